#include "meshard/processes/internal/local_store.h"

#include "meshard/base/cat.h"

namespace meshard::internal {

Result<void> LocalStore::put(std::string_view key, std::string_view value) {
  std::lock_guard lock(mutex_);
  values_.insert_or_assign(std::string(key), std::string(value));
  changed_.notify_all();
  return {};
}

Result<std::string> LocalStore::get(std::string_view key, std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  auto is_there = [&] { return values_.find(key) != values_.end(); };
  if (limit < std::chrono::milliseconds(0))
    changed_.wait(lock, is_there);
  else if (!changed_.wait_for(lock, limit, is_there))
    return Error(ErrorCode::kDeadlineExceeded,
                 cat("[store] get \"", key, "\": no process has put it"));
  return values_.find(key)->second;
}

Result<std::optional<std::string>> LocalStore::try_get(std::string_view key) {
  std::lock_guard lock(mutex_);
  auto found = values_.find(key);
  if (found == values_.end()) return std::optional<std::string>();
  return std::optional(found->second);
}

Result<void> LocalStore::publish(std::string_view key, std::string_view value, std::string* first) {
  std::lock_guard lock(mutex_);
  auto [at, is_new] = values_.try_emplace(std::string(key), value);
  if (is_new) changed_.notify_all();
  if (first != nullptr) *first = at->second;
  if (at->second == value) return {};
  return Error(ErrorCode::kAlreadyExists,
               cat("[store] publish \"", key, "\": this process has stored another value"));
}

}  // namespace meshard::internal

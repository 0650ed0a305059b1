// The remote store is tested in meshard/processes/internal/server_test.cc.
#include "meshard/processes/internal/stores.h"

#include <algorithm>
#include <optional>

#include "meshard/base/awaiting.h"
#include "meshard/base/cat.h"

namespace meshard::internal {
namespace {

Message store_request(MessageKind kind, std::string_view key, std::string_view value,
                      std::int64_t number = 0) {
  return {.kind = kind, .number = number, .name = std::string(key), .value = std::string(value)};
}

/// For messages, which need not be as long as keys may be.
std::string short_key(std::string_view key) {
  return cat('"', key.substr(0, 200), key.size() > 200 ? "..." : "", '"');
}

}  // namespace

std::optional<Error> reply_error(const Message& reply, std::string_view request) {
  if (reply.number == 0) return std::nullopt;
  bool known = reply.number >= 1 && reply.number <= 16;
  return Error(known ? static_cast<ErrorCode>(reply.number) : ErrorCode::kUnknown,
               cat(request, ": ", reply.name));
}

std::int64_t limit_number(std::chrono::milliseconds limit) {
  return std::max<std::int64_t>(limit.count(), -1);
}

Result<void> RemoteStore::put(std::string_view key, std::string_view value) {
  MESHARD_ASSIGN_OR_RETURN(Message reply,
                           connection_.request(store_request(MessageKind::kPut, key, value)));
  if (auto error = reply_error(reply, cat("[store] put ", short_key(key)))) return *error;
  return {};
}

Result<std::string> RemoteStore::get(std::string_view key, std::chrono::milliseconds limit) {
  // 0 would be try_get()
  std::int64_t wait = limit.count() == 0 ? 1 : limit_number(limit);
  std::optional<AwaitingScope> awaiting;
  if (wait < 0) {
    note_program_thread();
    awaiting.emplace(Awaiting{cat("the value of ", short_key(key)), {{cat("value/", key), 1, {}}}});
  }
  MESHARD_ASSIGN_OR_RETURN(Message reply,
                           connection_.request(store_request(MessageKind::kGet, key, "", wait)));
  if (auto error = reply_error(reply, cat("[store] get ", short_key(key)))) return *error;
  return std::move(reply.value);
}

Result<std::optional<std::string>> RemoteStore::try_get(std::string_view key) {
  MESHARD_ASSIGN_OR_RETURN(Message reply,
                           connection_.request(store_request(MessageKind::kGet, key, "")));
  if (reply.number == static_cast<int>(ErrorCode::kNotFound)) return std::optional<std::string>();
  if (auto error = reply_error(reply, cat("[store] get ", short_key(key)))) return *error;
  return std::optional(std::move(reply.value));
}

Result<void> RemoteStore::publish(std::string_view key, std::string_view value,
                                  std::string* first) {
  MESHARD_ASSIGN_OR_RETURN(Message reply,
                           connection_.request(store_request(MessageKind::kPublish, key, value)));
  bool differs = reply.number == static_cast<int>(ErrorCode::kAlreadyExists);
  if (first != nullptr) *first = differs ? std::move(reply.value) : std::string(value);
  if (differs) reply.name += " has stored another value";
  if (auto error = reply_error(reply, cat("[store] publish ", short_key(key)))) return *error;
  return {};
}

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

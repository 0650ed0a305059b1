#include "meshard/lowering/nan_checks.h"

#include <unordered_map>
#include <utility>

namespace meshard {
namespace {

struct Table {
  std::mutex mutex;
  std::int64_t next = 0;
  std::unordered_map<std::int64_t, std::weak_ptr<NanChecks>> all;
};

// Never destroyed: programs may run while static objects are destroyed.
Table& table() {
  static auto* instance = new Table;
  return *instance;
}

}  // namespace

std::shared_ptr<NanChecks> NanChecks::make() {
  auto checks = std::make_shared<NanChecks>();
  std::lock_guard lock(table().mutex);
  std::erase_if(table().all, [](const auto& each) { return each.second.expired(); });
  checks->number_ = table().next++;
  table().all.emplace(checks->number_, checks);
  return checks;
}

std::shared_ptr<NanChecks> NanChecks::find(std::int64_t number) {
  std::lock_guard lock(table().mutex);
  auto found = table().all.find(number);
  return found == table().all.end() ? nullptr : found->second.lock();
}

std::size_t NanChecks::add(NanCheck check) {
  std::lock_guard lock(mutex_);
  checks_.push_back(std::move(check));
  return checks_.size() - 1;
}

void NanChecks::report(std::size_t index) {
  std::lock_guard lock(mutex_);
  if (index < checks_.size()) checks_[index].found = true;
}

std::unique_lock<std::mutex> NanChecks::begin() {
  std::unique_lock running(running_);
  std::lock_guard lock(mutex_);
  for (NanCheck& check : checks_) check.found = false;
  return running;
}

NanChecks::Found NanChecks::found() const {
  std::lock_guard lock(mutex_);
  Found first;
  for (const NanCheck& check : checks_) {
    auto& kind = check.op.empty() ? first.result : first.operation;
    if (check.found && !kind) kind = check;
  }
  return first;
}

}  // namespace meshard

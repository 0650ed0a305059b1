// Tested in meshard/runtime/internal/lazy_evaluator_test.cc.
#include "meshard/runtime/internal/launched_results.h"

#include <utility>

namespace meshard {

void LaunchedResults::add_locked(pjrt::Launch launch, std::vector<Value> results) {
  unsettled_.push_back(
      {std::make_shared<const pjrt::Launch>(std::move(launch)), std::move(results)});
  settle_locked(Failed::kLeave);
}

void LaunchedResults::settle_locked(Failed what) {
  std::erase_if(unsettled_, [&](Unsettled& each) {
    bool failed = each.launch->has_failed();
    if (failed && what == Failed::kLeave) return false;
    if (!failed && !each.launch->is_ready().value_or(false)) return false;
    for (const Value& result : each.results) {
      if (failed)
        failed_.push_back(result.node()->take_storage(result.index()));
      else if (!result->keeps_operands())
        result.node()->forget_operands();
    }
    return true;
  });
  has_unsettled_.store(!unsettled_.empty(), std::memory_order_relaxed);
}

void LaunchedResults::settle() {
  if (!has_unsettled_.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(mutex_);
  settle_locked(Failed::kLeave);
}

void LaunchedResults::forget_failed() {
  std::vector<std::shared_ptr<const pjrt::Launch>> under_way;
  bool failed = false;
  {
    std::lock_guard lock(mutex_);
    for (const Unsettled& each : unsettled_) {
      failed |= each.launch->has_failed();
      under_way.push_back(each.launch);
    }
  }
  if (failed)
    for (const auto& launch : under_way) (void)launch->await();  // the error is discarded
  if (!has_unsettled_.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(mutex_);
  settle_locked(Failed::kForget);
}

}  // namespace meshard

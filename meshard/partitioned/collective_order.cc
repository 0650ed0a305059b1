// Tested in tests/partitioned/collective_order_test.cc.
#include "meshard/partitioned/collective_order.h"

#include <algorithm>

namespace meshard {

Result<void> CollectiveOrder::make_chain() {
  const std::int32_t zero = 0;
  pjrt::HostArrayView view{&zero, pjrt::ElementType::kS32, {}};
  MESHARD_ASSIGN_OR_RETURN(
      pjrt::SentBuffer sent,
      client_.buffer_from_host(view, pjrt::HostSemantics::kImmutableOnlyDuringCall, *device_));
  chain_ = pjrt::BufferList::of({&sent.buffer, 1});
  return {};
}

Result<pjrt::Launch> CollectiveOrder::execute(const pjrt::LoadedExecutable& program,
                                              std::span<const pjrt::BufferList* const> arguments,
                                              std::span<pjrt::BufferList> outputs,
                                              const pjrt::LaunchOptions& options,
                                              const OrderedStep& step) {
  std::lock_guard lock(mutex_);
  if (failure_) return failure_->with_note("in an earlier launch");
  if (!chain_) MESHARD_RETURN_IF_ERROR(make_chain());
  arguments_.assign(arguments.begin(), arguments.end());
  arguments_.push_back(&chain_);
  outputs_.resize(outputs.size() + 1);
  std::move(outputs.begin(), outputs.end(), outputs_.begin());
  record(step, options.where);
  Result<pjrt::Launch> launch = program.execute(arguments_, outputs_, options);
  if (launch.ok())
    chain_ = std::move(outputs_.back());
  else
    failure_ = launch.error();
  std::move(outputs_.begin(), outputs_.end() - 1, outputs.begin());
  outputs_.clear();
  arguments_.clear();
  return launch;
}

// Before the launch, which may wait for others.
void CollectiveOrder::record(const OrderedStep& step, SourceLocation where) {
  if (step.step) history_->add(*step.track, step.step, where);
}

Result<void> CollectiveOrder::communicate(const std::function<Result<void>()>& function,
                                          const OrderedStep& step, SourceLocation where) {
  std::lock_guard lock(mutex_);
  if (failure_) return failure_->with_note("in an earlier launch");
  record(step, where);
  Result<void> done;
  if (chain_) done = chain_[0].await_ready();
  if (done.ok()) done = function();
  if (!done.ok()) failure_ = done.error();
  return done;
}

void CollectiveOrder::restart() {
  std::lock_guard lock(mutex_);
  chain_ = {};
  failure_.reset();
}

}  // namespace meshard

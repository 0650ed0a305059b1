// Tested in tests/partitioned/collective_order_test.cc.
#include "meshard/partitioned/collective_order.h"

#include <algorithm>

namespace meshard {

Result<pjrt::Buffer> CollectiveOrder::make_link(const pjrt::Device& device) const {
  const std::int32_t zero = 0;
  pjrt::HostArrayView view{&zero, pjrt::ElementType::kS32, {}};
  MESHARD_ASSIGN_OR_RETURN(
      pjrt::SentBuffer sent,
      client_.buffer_from_host(view, pjrt::HostSemantics::kImmutableOnlyDuringCall, device));
  return std::move(sent.buffer);
}

// The chain of these devices. Usually the launch before was on the same ones.
Result<pjrt::BufferList> CollectiveOrder::take_chain(const pjrt::DeviceList& devices) {
  auto same =
      std::ranges::find_if(chains_, [&](const auto& c) { return &c.devices() == &devices; });
  if (same != chains_.end()) {
    pjrt::BufferList chain = std::move(*same);
    chains_.erase(same);
    return chain;
  }
  std::vector<pjrt::Buffer> links(devices.size());
  auto place_of = [&](const pjrt::Device& device) {
    return std::ranges::find(devices.devices(), &device) - devices.devices().begin();
  };
  std::vector<pjrt::BufferList> others;
  for (pjrt::BufferList& chain : chains_) {
    bool meets = std::ranges::any_of(chain.devices().devices(), [&](const pjrt::Device* each) {
      return place_of(*each) < std::ssize(links);
    });
    if (!meets) {
      others.push_back(std::move(chain));
      continue;
    }
    for (pjrt::Buffer& link : std::move(chain).split())
      if (auto place = place_of(link.device()); place < std::ssize(links))
        links[static_cast<std::size_t>(place)] = std::move(link);
      else
        others.push_back(pjrt::BufferList::of({&link, 1}));
  }
  chains_ = std::move(others);
  for (std::size_t i = 0; i < links.size(); ++i)
    if (!links[i]) {
      MESHARD_ASSIGN_OR_RETURN(links[i], make_link(devices[i]));
    }
  return pjrt::BufferList::of(links);
}

Result<pjrt::Launch> CollectiveOrder::execute(const pjrt::LoadedExecutable& program,
                                              std::span<const pjrt::BufferList* const> arguments,
                                              std::span<pjrt::BufferList> outputs,
                                              const pjrt::LaunchOptions& options,
                                              const OrderedStep& step) {
  std::lock_guard lock(mutex_);
  if (failure_) return failure_->with_note("in an earlier launch");
  Result<pjrt::BufferList> chain = take_chain(program.device_list());
  if (!chain.ok()) {
    failure_ = chain.error();
    return *failure_;
  }
  arguments_.assign(arguments.begin(), arguments.end());
  arguments_.push_back(&*chain);
  outputs_.resize(outputs.size() + 1);
  std::move(outputs.begin(), outputs.end(), outputs_.begin());
  record(step, options.where);
  Result<pjrt::Launch> launch = program.execute(arguments_, outputs_, options);
  if (launch.ok())
    chains_.push_back(std::move(outputs_.back()));
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
  for (const pjrt::BufferList& chain : chains_)
    for (std::size_t i = 0; i < chain.size(); ++i)
      if (Result<void> ended = chain[i].await_ready(); !ended.ok()) done = std::move(ended);
  if (done.ok()) done = function();
  if (!done.ok()) failure_ = done.error();
  return done;
}

void CollectiveOrder::fail(const Error& error) {
  std::lock_guard lock(mutex_);
  if (!failure_) failure_ = error;
}

void CollectiveOrder::restart() {
  std::lock_guard lock(mutex_);
  chains_.clear();
  failure_.reset();
}

}  // namespace meshard

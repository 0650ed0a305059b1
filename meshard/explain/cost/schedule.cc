#include "meshard/explain/cost/schedule.h"

#include <algorithm>
#include <map>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/hlo/executions.h"

namespace meshard {
namespace {

// One transfer over links, or from or to the host.
struct Transfer {
  const Collective* collective = nullptr;  // null for host transfers
  const HloInstruction* step = nullptr;
  double seconds = 0;
  std::vector<std::pair<double, double>> parts = {};  // start and end of each
  std::vector<std::size_t> channels = {};
  double exposed = 0;

  double end() const { return parts.empty() ? 0 : parts.back().second; }
  TransferTime time() const {
    // A smaller remainder is only rounding.
    constexpr double kRounding = 1e-9;
    double waited = exposed > seconds * (1 - kRounding) ? seconds : exposed;
    return {.hidden_seconds = seconds - waited, .exposed_seconds = waited};
  }
};

// What an asynchronous instruction started.
struct Started {
  std::vector<std::size_t> transfers;
  double memory = 0;  // the total memory traffic that is queued with it, in seconds
};

// The simulated time of one execution of a computation.
struct Block {
  double seconds = 0, busy = 0, waits_for_links = 0, waits_for_host = 0;
  double spare_memory = 0;  // time in which memory is idle
  TransferTime host;
  std::map<const Collective*, TransferTime> collectives;
  std::vector<double> channels;  // seconds of use

  void add(const Block& other, double times) {
    seconds += times * other.seconds;
    busy += times * other.busy;
    waits_for_links += times * other.waits_for_links;
    waits_for_host += times * other.waits_for_host;
    spare_memory += times * other.spare_memory;
    add_time(other.host, times, host);
    for (const auto& [collective, time] : other.collectives)
      add_time(time, times, collectives[collective]);
    if (channels.size() < other.channels.size()) channels.resize(other.channels.size(), 0);
    for (std::size_t i = 0; i < other.channels.size(); ++i)
      channels[i] += times * other.channels[i];
  }
  static void add_time(const TransferTime& time, double times, TransferTime& to) {
    to.hidden_seconds += times * time.hidden_seconds;
    to.exposed_seconds += times * time.exposed_seconds;
  }
};

class Simulator {
 public:
  explicit Simulator(const StepCosts& costs) : costs_(costs) {}

  const Block& block_of(const InstructionIndex& in);
  std::unordered_map<const HloInstruction*, TransferTime> take_steps() { return std::move(steps_); }

  Block nested(const HloInstruction& one);
  std::vector<std::size_t> channels_of(const Collective& one, const std::string& link);
  std::size_t channel(std::string name) {
    return numbers_.try_emplace(std::move(name), numbers_.size()).first->second;
  }
  void record(const HloInstruction* step, const TransferTime& time) {
    Block::add_time(time, 1, steps_[step]);
  }
  const StepCosts& costs() const { return costs_; }

 private:
  const StepCosts& costs_;
  std::map<std::string, std::size_t> numbers_;
  std::unordered_map<std::int64_t, Block> blocks_;
  std::unordered_map<const HloInstruction*, TransferTime> steps_;
};

// One execution of one computation.
class Run {
 public:
  Run(Simulator& simulator, const InstructionIndex& in)
      : simulator_(simulator), in_(in), pairs_(simulator.costs().executions().module(), in) {}

  Block simulate() {
    for (const HloInstruction* one : in_.in_run_order()) step(*one);
    for (std::size_t i = 0; i < transfers_.size(); ++i) wait_for(i);
    wait_for_memory(queued_);
    for (const Transfer& each : transfers_) {
      Block::add_time(each.time(), 1,
                      each.collective ? block_.collectives[each.collective] : block_.host);
      simulator_.record(each.step, each.time());
    }
    return std::move(block_);
  }

 private:
  double& now() { return block_.seconds; }

  void step(const HloInstruction& one) {
    if (one.opcode == "while" || one.opcode == "conditional" || one.opcode == "call")
      return run_nested(simulator_.nested(one));
    const ModuleIndex& module = simulator_.costs().executions().module();
    if (ends_asynchronous(module, one)) {
      auto started = started_.find(pairs_.start_of(one));
      if (started != started_.end()) {
        for (std::size_t i : started->second.transfers) wait_for(i);
        wait_for_memory(started->second.memory);
      }
      if (one.opcode != "fusion") return;
      StepCost cost = simulator_.costs().of(in_, one);
      return compute(cost.compute_seconds, cost.memory_seconds);
    }
    if (starts_asynchronous(module, one)) return start(one);
    if (is_step(one.opcode)) run_at_once(one);
  }

  void start(const HloInstruction& one) {
    StepCost cost = simulator_.costs().of(in_, one);
    if (cost.compute_seconds > 0) compute(cost.compute_seconds, 0);
    queued_ += cost.memory_seconds;
    started_[&one] = {issue(one, cost), queued_};
  }

  // A step that the next ones wait for.
  void run_at_once(const HloInstruction& one) {
    StepCost cost = simulator_.costs().of(in_, one);
    std::vector<std::size_t> issued = issue(one, cost);
    if (issued.empty()) return compute(cost.compute_seconds, cost.memory_seconds);
    // Products in the same fusion hide a collective.
    if (cost.compute_seconds > 0) compute(cost.compute_seconds, cost.memory_seconds);
    double before = now();
    for (std::size_t i : issued) wait_for(i);
    if (cost.compute_seconds == 0)
      compute(0, std::max(0.0, cost.memory_seconds - (now() - before)));
  }

  void compute(double seconds, double memory) {
    double takes = std::max(seconds, memory);
    now() += takes;
    block_.busy += takes;
    use_spare_memory(takes - memory);
  }

  void run_nested(Block inside) {
    // What is in flight on the same links takes longer by what the block uses.
    for (Transfer& each : transfers_) {
      if (each.end() <= now()) continue;
      double later = 0;
      for (std::size_t channel : each.channels)
        if (channel < inside.channels.size()) later = std::max(later, inside.channels[channel]);
      each.parts.back().second += later;
      for (std::size_t channel : each.channels) occupy(channel, each.end());
    }
    double spare = inside.spare_memory;
    inside.spare_memory = 0;
    block_.add(inside, 1);
    use_spare_memory(spare);
  }

  // Queues the transfers of a step on their links.
  std::vector<std::size_t> issue(const HloInstruction& one, const StepCost& cost) {
    std::vector<std::size_t> issued;
    for (const Collective* each : cost.collectives) {
      Transfer made{.collective = each, .step = &one};
      double at = now();
      for (const LinkUse& use : simulator_.costs().links()->uses(*each))
        at = queue(simulator_.channels_of(*each, use.link), at, use.seconds, made);
      if (made.seconds > 0) issued.push_back(add(std::move(made)));
    }
    for (auto [name, seconds] : {std::pair("from host", cost.from_host_seconds),
                                 std::pair("to host", cost.to_host_seconds)}) {
      if (seconds <= 0) continue;
      Transfer made{.step = &one};
      queue({simulator_.channel(name)}, now(), seconds, made);
      issued.push_back(add(std::move(made)));
    }
    return issued;
  }

  std::size_t add(Transfer made) {
    transfers_.push_back(std::move(made));
    return transfers_.size() - 1;
  }

  // Adds a part that starts when all its channels are free. Returns its end.
  double queue(const std::vector<std::size_t>& channels, double at, double seconds,
               Transfer& transfer) {
    for (std::size_t channel : channels)
      if (channel < free_.size()) at = std::max(at, free_[channel]);
    double end = at + seconds;
    transfer.parts.emplace_back(at, end);
    transfer.seconds += seconds;
    for (std::size_t channel : channels) {
      occupy(channel, end);
      if (block_.channels.size() <= channel) block_.channels.resize(channel + 1, 0);
      block_.channels[channel] += seconds;
      transfer.channels.push_back(channel);
    }
    return end;
  }

  void occupy(std::size_t channel, double until) {
    if (free_.size() <= channel) free_.resize(channel + 1, 0);
    free_[channel] = std::max(free_[channel], until);
  }

  void wait_for(std::size_t number) {
    double from = now(), to = transfers_[number].end();
    if (to <= from) return;
    for (Transfer& each : transfers_)
      for (const auto& [start, end] : each.parts)
        each.exposed += std::max(0.0, std::min(end, to) - std::max(start, from));
    now() = to;
    (transfers_[number].collective ? block_.waits_for_links : block_.waits_for_host) += to - from;
    use_spare_memory(to - from);
  }

  void wait_for_memory(double queued) {
    double rest = queued - served_;
    if (rest <= 0) return;
    now() += rest;
    block_.busy += rest;
    served_ = queued;
  }

  // Memory serves what is queued while it is idle.
  void use_spare_memory(double seconds) {
    double served = std::min(seconds, queued_ - served_);
    served_ += served;
    block_.spare_memory += seconds - served;
  }

  Simulator& simulator_;
  const InstructionIndex& in_;
  AsynchronousPairs pairs_;
  Block block_;
  std::vector<Transfer> transfers_;
  std::unordered_map<const HloInstruction*, Started> started_;
  std::vector<double> free_;        // by channel: when it is free
  double queued_ = 0, served_ = 0;  // seconds of memory traffic of asynchronous instructions
};

// The recursion depth is bounded, because computing the executions checks it.
const Block& Simulator::block_of(const InstructionIndex& in) {
  auto [found, is_new] = blocks_.try_emplace(in.computation().id);
  if (!is_new) return found->second;
  Block made = Run(*this, in).simulate();
  return blocks_[in.computation().id] = std::move(made);
}

Block Simulator::nested(const HloInstruction& one) {
  double trips = static_cast<double>(costs_.executions().trip_count(one).value_or(1));
  Block sum;
  const Block* longest = nullptr;
  for (std::size_t n = 0; n < one.called_computations.size(); ++n) {
    const InstructionIndex* inside = costs_.executions().module().called(one, n);
    if (inside == nullptr) continue;
    const Block& each = block_of(*inside);
    switch (call_kind(one, n)) {
      case CallKind::kLoopBody: sum.add(each, trips); break;
      case CallKind::kLoopCondition: sum.add(each, trips + 1); break;
      case CallKind::kBranch:
        if (!longest || each.seconds > longest->seconds) longest = &each;
        break;
      default: sum.add(each, 1); break;
    }
  }
  if (longest) sum.add(*longest, 1);
  return sum;
}

// One channel for each axis of a grid of chips, one for all axes of other links.
std::vector<std::size_t> Simulator::channels_of(const Collective& one, const std::string& link) {
  std::vector<std::size_t> found;
  if (one.axes && costs_.links()->axes_have_links(link))
    for (const AxisRef& axis : *one.axes) found.push_back(channel(cat(link, " along ", axis.name)));
  if (found.empty()) found.push_back(channel(link));
  return found;
}

std::vector<CommunicationTime> by_kind(const std::vector<Collective>& collectives,
                                       const std::map<const Collective*, TransferTime>& times) {
  std::map<std::pair<std::string, std::string>, CommunicationTime> groups;
  for (const Collective& one : collectives) {
    auto time = times.find(&one);
    if (time == times.end()) continue;
    std::string kind(one.axes || one.group_size > 0 || one.channel != 0 ? to_string(one.kind)
                                                                        : "custom call");
    std::string axes = one.axes ? join(*one.axes, ", ") : "";
    CommunicationTime& group = groups[{kind, axes}];
    group.kind = kind;
    group.axes = axes;
    ++group.collectives;
    group.executions = saturating_add(group.executions, one.executions);
    Block::add_time(time->second, 1, group.time);
  }
  std::vector<CommunicationTime> sorted;
  for (auto& group : groups) sorted.push_back(std::move(group.second));
  std::ranges::stable_sort(sorted, [](const CommunicationTime& a, const CommunicationTime& b) {
    return a.time.exposed_seconds > b.time.exposed_seconds;
  });
  return sorted;
}

}  // namespace

SimulatedSchedule simulate_schedule(const StepCosts& costs,
                                    const std::vector<Collective>& collectives,
                                    const Roofline& bound) {
  Simulator simulator(costs);
  const Block& block = simulator.block_of(costs.executions().module().entry());
  Schedule schedule{.seconds = block.seconds,
                    .busy_seconds = block.busy,
                    .links = {.exposed_seconds = block.waits_for_links},
                    .host = {.hidden_seconds = block.host.hidden_seconds,
                             .exposed_seconds = block.waits_for_host},
                    .communication = by_kind(collectives, block.collectives)};
  for (const CommunicationTime& each : schedule.communication)
    schedule.links.hidden_seconds += each.time.hidden_seconds;
  bool conditional = std::ranges::any_of(collectives, &Collective::conditional);
  if (double missing = bound.seconds() - schedule.seconds; missing > 0 && !conditional) {
    schedule.seconds += missing;
    (bound.bound_by() == "communication" ? schedule.links.exposed_seconds
                                         : schedule.busy_seconds) += missing;
  }
  return {std::move(schedule), simulator.take_steps()};
}

}  // namespace meshard

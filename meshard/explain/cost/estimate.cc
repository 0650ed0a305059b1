#include "meshard/explain/cost/estimate.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "meshard/base/cat.h"
#include "meshard/explain/collectives/origin.h"

namespace meshard {
namespace {

using pjrt::HloInstruction;

constexpr std::size_t kMostEntries = 200000;

double compute_seconds(const HloCost& cost, const HardwareFigures& figures) {
  double seconds = 0;
  for (const auto& [type, count] : cost.operations) {
    double rate = count.matrix > 0 ? figures.matrix_rate(pjrt::to_string(type)) : 0;
    if (rate > 0) seconds += count.matrix / rate;
  }
  return seconds;
}

double memory_seconds(double bytes, const HardwareFigures& figures) {
  return figures.memory_bandwidth > 0 ? bytes / figures.memory_bandwidth : 0;
}

// Sums for one list of axes on one kind of link.
struct LinkSum {
  double bytes = 0;
  double both_ways = 0, forward = 0, backward = 0;  // seconds
};

std::string axes_name(const Collective& one) { return one.axes ? join(*one.axes, ", ") : ""; }

// Sorted. Instructions that take no time themselves.
constexpr std::string_view kNoStep[] = {"add-dependency",
                                        "after-all",
                                        "bitcast",
                                        "constant",
                                        "copy-done",
                                        "domain",
                                        "get-tuple-element",
                                        "opt-barrier",
                                        "optimization-barrier",
                                        "parameter",
                                        "partition-id",
                                        "replica-id",
                                        "tuple"};
static_assert(std::is_sorted(std::begin(kNoStep), std::end(kNoStep)));

bool is_step(std::string_view opcode) {
  return !opcode.ends_with("-done") && opcode != "async-update" &&
         !std::binary_search(std::begin(kNoStep), std::end(kNoStep), opcode);
}

bool is_copy(std::string_view opcode) {
  return opcode.starts_with("copy") || opcode == "slice" || opcode == "dynamic-slice" ||
         opcode == "dynamic-update-slice" || opcode == "transpose" || opcode == "concatenate" ||
         opcode == "pad" || opcode == "reshape";
}

class Timeline {
 public:
  Timeline(const Executions& executions, const ModuleCost& cost,
           const std::vector<Collective>& collectives, const LinkModel* links, const Graph* graph)
      : executions_(executions), cost_(cost), links_(links), places_(graph) {
    for (const Collective& one : collectives) collectives_.emplace(one.instruction, &one);
  }

  std::vector<TimelineEntry> run() {
    walk(executions_.module().entry(), 0);
    return std::move(entries_);
  }

 private:
  // The recursion depth is bounded, because computing the executions checks it. Returns the seconds
  // of one execution.
  double walk(const InstructionIndex& in, int depth) {
    if (!listed_.insert(in.computation().id).second) return 0;
    double sum = 0;
    std::int64_t executions = executions_.find(in.computation().id)->executions;
    for (const HloInstruction* one : in.in_run_order())
      if (is_step(one->opcode) && entries_.size() < kMostEntries)
        sum += add(*one, depth, executions);
    return sum;
  }

  double add(const HloInstruction& one, int depth, std::int64_t executions) {
    std::size_t at = entries_.size();
    entries_.push_back(entry(one, depth, executions));
    double seconds = entries_[at].seconds;
    bool nested = one.opcode == "while" || one.opcode == "conditional" || one.opcode == "call";
    if (nested) seconds = steps_inside(one, depth);
    entries_[at].seconds = seconds;
    return seconds;
  }

  double steps_inside(const HloInstruction& one, int depth) {
    double trips = static_cast<double>(executions_.trip_count(one).value_or(1));
    double sum = 0, longest = 0;
    for (std::size_t n = 0; n < one.called_computations.size(); ++n) {
      const InstructionIndex* inside = executions_.module().called(one, n);
      if (inside == nullptr) continue;
      CallKind kind = call_kind(one, n);
      double each = walk(*inside, depth + 1);
      if (kind == CallKind::kLoopBody) sum += trips * each;
      if (kind == CallKind::kLoopCondition) sum += (trips + 1) * each;
      if (kind == CallKind::kCall) sum += each;
      if (kind == CallKind::kBranch) longest = std::max(longest, each);
    }
    return sum + longest;
  }

  TimelineEntry entry(const HloInstruction& one, int depth, std::int64_t executions) {
    const HloCost& cost = cost_.of(one);
    TimelineEntry made;
    made.instruction = one.name;
    made.opcode = one.opcode;
    made.depth = depth;
    made.executions = executions;
    made.flops = cost.flops();
    made.memory_bytes = cost.memory_bytes;
    Transfer transfer;
    add_transfers(one, transfer, 0);
    made.link_bytes = transfer.bytes;
    if (links_) {
      const HardwareFigures& figures = links_->figures();
      made.seconds = std::max({compute_seconds(cost, figures),
                               memory_seconds(cost.memory_bytes, figures), transfer.seconds});
    }
    made.kind = kind_of(one, cost, transfer);
    if (std::optional<OriginPlace> place = place_of(one)) made.place = place->to_string();
    return made;
  }

  struct Transfer {
    bool any = false;
    double bytes = 0, seconds = 0;
  };

  // Adds the transfers of the instruction and of the body of a fusion or async-start, not of a
  // loop.
  void add_transfers(const HloInstruction& one, Transfer& to, int depth) const {
    if (auto found = collectives_.find(one.name); found != collectives_.end()) {
      to.any = true;
      to.bytes += static_cast<double>(found->second->bytes());
      if (links_) to.seconds += links_->seconds(*found->second);
    }
    if (depth > 8 || (one.opcode != "fusion" && one.opcode != "async-start")) return;
    if (const InstructionIndex* inside = executions_.module().called(one))
      for (const HloInstruction& each : inside->computation().instructions)
        add_transfers(each, to, depth + 1);
  }

  TimelineEntry::Kind kind_of(const HloInstruction& one, const HloCost& cost,
                              const Transfer& transfer) const {
    using Kind = TimelineEntry::Kind;
    if (one.opcode == "while") return Kind::kLoop;
    if (one.opcode == "conditional" || one.opcode == "call") return Kind::kOther;
    if (transfer.any && cost.matrix_flops() == 0) return Kind::kCollective;
    if (is_copy(one.opcode)) return Kind::kCopy;
    const InstructionIndex* inside =
        one.opcode == "async-start" ? executions_.module().called(one) : nullptr;
    if (inside && inside->root() && is_copy(inside->root()->opcode)) return Kind::kCopy;
    if (cost.flops() > 0 || cost.transcendentals() > 0 || one.opcode == "fusion")
      return Kind::kCompute;
    return cost.memory_bytes > 0 ? Kind::kCopy : Kind::kOther;
  }

  // The instruction's own place, else that of the root of the computation it calls.
  std::optional<OriginPlace> place_of(const HloInstruction& one) const {
    if (auto own = places_.named(one)) return own;
    if (one.opcode != "fusion" && one.opcode != "async-start") return std::nullopt;
    const InstructionIndex* inside = executions_.module().called(one);
    if (inside == nullptr || inside->root() == nullptr) return std::nullopt;
    return places_.named(*inside->root());
  }

  const Executions& executions_;
  const ModuleCost& cost_;
  const LinkModel* links_;
  OriginFinder places_;
  std::unordered_map<std::string_view, const Collective*> collectives_;
  std::unordered_set<std::int64_t> listed_;
  std::vector<TimelineEntry> entries_;
};

}  // namespace

ProgramCost program_cost(const ModuleCost& cost) {
  const HloCost& total = cost.total();
  ProgramCost program{.flops = {},
                      .memory_bytes = total.memory_bytes,
                      .transcendentals = total.transcendentals(),
                      .loops_known = cost.loops_known()};
  for (const auto& [type, count] : total.operations)
    if (count.matrix > 0 || count.other > 0)
      program.flops.push_back({std::string(pjrt::to_string(type)), count.matrix, count.other});
  return program;
}

Roofline roofline_of(const ProgramCost& cost, const std::vector<Collective>& collectives,
                     const LinkModel& links) {
  const HardwareFigures& figures = links.figures();
  Roofline roofline;
  roofline.memory_seconds = memory_seconds(cost.memory_bytes, figures);
  roofline.sources = figures.sources;
  for (const ProgramCost::Flops& each : cost.flops) {
    double rate = each.matrix > 0 ? figures.matrix_rate(each.element_type) : 0;
    if (rate > 0) roofline.compute_seconds += each.matrix / rate;
  }
  std::map<std::pair<std::string, std::string>, LinkSum> sums;
  for (const Collective& one : collectives)
    for (const LinkUse& use : links.uses(one)) {
      LinkSum& sum = sums[{axes_name(one), use.link}];
      auto times = static_cast<double>(one.executions);
      sum.bytes += times * use.bytes;
      (use.way == 0  ? sum.both_ways
       : use.way > 0 ? sum.forward
                     : sum.backward) += times * use.seconds;
    }
  for (const auto& [key, sum] : sums)
    roofline.links.push_back({.axes = key.first,
                              .link = key.second,
                              .bytes = sum.bytes,
                              .seconds = sum.both_ways + std::max(sum.forward, sum.backward)});
  return roofline;
}

std::vector<TimelineEntry> timeline_of(const Executions& executions, const ModuleCost& cost,
                                       const std::vector<Collective>& collectives,
                                       const LinkModel* links, const Graph* graph) {
  return Timeline(executions, cost, collectives, links, graph).run();
}

}  // namespace meshard

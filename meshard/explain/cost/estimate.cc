#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_set>

#include "meshard/base/cat.h"
#include "meshard/explain/collectives/origin.h"
#include "meshard/explain/cost/schedule.h"
#include "meshard/hlo/executions.h"

namespace meshard {
namespace {

constexpr std::size_t kMostEntries = 200000;

double memory_seconds(double bytes, const HardwareFigures& figures) {
  return figures.memory_bandwidth > 0 ? bytes / figures.memory_bandwidth : 0;
}

std::string axes_name(const Collective& one) { return one.axes ? join(*one.axes, ", ") : ""; }

bool is_copy(std::string_view opcode) {
  return opcode.starts_with("copy") || opcode == "slice" || opcode == "dynamic-slice" ||
         opcode == "dynamic-update-slice" || opcode == "transpose" || opcode == "concatenate" ||
         opcode == "pad" || opcode == "reshape";
}

class Timeline {
 public:
  Timeline(const StepCosts& costs, const SimulatedSchedule* simulated, const Graph* graph)
      : executions_(costs.executions()),
        costs_(costs),
        simulated_(simulated),
        places_(graph, &executions_.module().module()) {}

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
        sum += add(in, *one, depth, executions);
    return sum;
  }

  double add(const InstructionIndex& in, const HloInstruction& one, int depth,
             std::int64_t executions) {
    std::size_t at = entries_.size();
    entries_.push_back(entry(in, one, depth, executions));
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

  TimelineEntry entry(const InstructionIndex& in, const HloInstruction& one, int depth,
                      std::int64_t executions) {
    const HloCost& cost = costs_.cost().of(one);
    StepCost step = costs_.of(in, one);
    TimelineEntry made;
    made.instruction = one.name;
    made.opcode = one.opcode;
    made.depth = depth;
    made.executions = executions;
    made.flops = cost.flops();
    made.memory_bytes = cost.memory_bytes;
    made.link_bytes = step.link_bytes;
    made.host_bytes = step.host.from_host + step.host.to_host;
    if (const LinkModel* links = costs_.links()) {
      double sent = 0;
      for (const Collective* each : step.collectives) sent += links->seconds(*each);
      made.seconds = std::max({step.compute_seconds, step.memory_seconds, sent,
                               step.from_host_seconds + step.to_host_seconds});
    }
    if (simulated_)
      if (auto found = simulated_->steps.find(&one); found != simulated_->steps.end()) {
        made.hidden_seconds = found->second.hidden_seconds;
        made.exposed_seconds = found->second.exposed_seconds;
      }
    made.kind = kind_of(one, cost, !step.collectives.empty());
    if (std::optional<OriginPlace> place = place_of(one)) made.place = place->to_string();
    return made;
  }

  TimelineEntry::Kind kind_of(const HloInstruction& one, const HloCost& cost, bool sends) const {
    using Kind = TimelineEntry::Kind;
    if (one.opcode == "while") return Kind::kLoop;
    if (one.opcode == "conditional" || one.opcode == "call") return Kind::kOther;
    if (sends && cost.matrix_flops() == 0) return Kind::kCollective;
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
  const StepCosts& costs_;
  const SimulatedSchedule* simulated_;
  OriginFinder places_;
  std::unordered_set<std::int64_t> listed_;
  std::vector<TimelineEntry> entries_;
};

double sum_over(const std::vector<LinkTime>& links) {
  double sum = 0;
  for (const LinkTime& link : links) sum += link.seconds;
  return sum;
}

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
  std::map<std::string, std::vector<const Collective*>> by_axes;
  std::vector<const Collective*> all;
  for (const Collective& one : collectives) {
    by_axes[axes_name(one)].push_back(&one);
    all.push_back(&one);
  }
  for (const auto& [axes, of_axes] : by_axes)
    for (const LinkUse& use : links.together(of_axes))
      roofline.links.push_back(
          {.axes = axes, .link = use.link, .bytes = use.bytes, .seconds = use.seconds});
  roofline.communication_seconds = 0;
  for (const LinkUse& use : links.together(all))
    roofline.communication_seconds = std::max(*roofline.communication_seconds, use.seconds);
  return roofline;
}

std::vector<TimelineEntry> timeline_of(const StepCosts& costs, const SimulatedSchedule* simulated,
                                       const Graph* graph) {
  return Timeline(costs, simulated, graph).run();
}

double ProgramCost::total_flops() const {
  double sum = 0;
  for (const Flops& each : flops) sum += each.matrix + each.other;
  return sum;
}

double Roofline::link_seconds() const {
  return communication_seconds ? *communication_seconds : sum_over(links);
}

double Roofline::seconds() const {
  return std::max({compute_seconds, memory_seconds, link_seconds()});
}

double Roofline::seconds_in_sequence() const {
  return compute_seconds + memory_seconds + sum_over(links);
}

std::string_view Roofline::bound_by() const {
  double most = seconds();
  if (most == compute_seconds) return "compute";
  return most == memory_seconds ? "memory" : "communication";
}

}  // namespace meshard

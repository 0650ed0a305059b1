// Tested in meshard/explain/cost/schedule_test.cc.
#include "meshard/explain/cost/step_cost.h"

#include <algorithm>
#include <optional>

#include "meshard/base/cat.h"
#include "meshard/base/field_notes.h"
#include "meshard/base/saturating.h"
#include "meshard/explain/byte_text.h"
#include "meshard/hlo/executions.h"

namespace meshard {
namespace {

constexpr int kMostNesting = 8;

// Instructions that take no time themselves.
constexpr std::string_view kNoStep =
    "add-dependency after-all bitcast constant copy-done domain get-tuple-element opt-barrier "
    "optimization-barrier parameter partition-id replica-id tuple";

double rate_seconds(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

// The elements of the part of an all-reduce that its fusion returns; none if it returns all.
std::optional<std::int64_t> kept_elements(const InstructionIndex& in, const HloInstruction& sum) {
  const HloInstruction* at = &sum;
  for (int step = 0; step < kMostNesting; ++step) {
    std::vector<const HloInstruction*> users = in.users(*at);
    if (users.size() != 1 || in.operand(*users[0], 0) != at) return std::nullopt;
    at = users[0];
    if (at->opcode == "dynamic-slice") return at->shape.element_count();
    if (at->opcode != "bitcast" && at->opcode != "reshape" && at->opcode != "convert" &&
        at->opcode != "copy")
      return std::nullopt;
  }
  return std::nullopt;
}

// The names of the all-reduces that are reduce-scatters.
std::vector<std::string_view> scattered_sums(const Executions& executions,
                                             const std::vector<Collective>& collectives) {
  std::unordered_map<std::string_view, std::int64_t> group_sizes;
  for (const Collective& one : collectives)
    if (one.kind == CollectiveKind::kAllReduce && one.form == CollectiveForm::kFused)
      group_sizes.emplace(one.instruction, one.group_size);
  std::vector<std::string_view> found;
  if (group_sizes.empty()) return found;
  for (const ReachedComputation& each : executions.calls().callers_first())
    for (const HloInstruction& one : each.index->computation().instructions) {
      auto size = one.opcode == "all-reduce" ? group_sizes.find(one.name) : group_sizes.end();
      if (size == group_sizes.end() || size->second < 2) continue;
      std::optional<std::int64_t> kept = kept_elements(*each.index, one);
      if (kept && *kept <= (one.shape.element_count() + size->second - 1) / size->second)
        found.push_back(one.name);
    }
  return found;
}

std::string host_bytes_text(double bytes) {
  return byte_text(static_cast<std::int64_t>(std::min(bytes, static_cast<double>(kMostCounted))));
}

// How many operands are followed from an end to its start.
constexpr int kMostOperands = 64;

const InstructionIndex* body_of_fusion(const ModuleIndex& module, const HloInstruction& one) {
  return one.opcode == "fusion" ? module.called(one) : nullptr;
}

bool contains_call(const ModuleIndex& module, const HloInstruction& one, std::string_view target) {
  const InstructionIndex* inside = body_of_fusion(module, one);
  if (inside == nullptr) return false;
  const auto& instructions = inside->computation().instructions;
  return std::ranges::any_of(
      instructions, [&](const HloInstruction& each) { return each.custom_call_target == target; });
}

// The channel of the collective in a fusion; none if there is none.
std::optional<std::int64_t> channel_in(const ModuleIndex& module, const HloInstruction& one) {
  if (const InstructionIndex* inside = body_of_fusion(module, one))
    for (const HloInstruction& each : inside->computation().instructions)
      if (each.channel_id != 0) return each.channel_id;
  return std::nullopt;
}

}  // namespace

bool is_step(std::string_view opcode) {
  return !opcode.ends_with("-done") && opcode != "async-update" && !lists_name(kNoStep, opcode);
}

std::vector<Collective> collectives_on_links(const Executions& executions,
                                             const std::vector<Collective>& collectives,
                                             const std::vector<CustomCall>& custom_calls) {
  std::vector<Collective> loading = collectives;
  for (std::string_view name : scattered_sums(executions, collectives))
    for (Collective& one : loading)
      if (one.instruction == name) one.kind = CollectiveKind::kReduceScatter;
  for (const CustomCall& call : custom_calls) {
    if (!call.cost || call.cost->link_bytes <= 0) continue;
    Collective sent{.kind = CollectiveKind::kCollectivePermute,
                    .instruction = call.instruction->name,
                    .executions = call.executions};
    sent.bytes_in = sent.bytes_out = static_cast<std::int64_t>(
        std::min(call.cost->link_bytes, static_cast<double>(kMostCounted)));
    loading.push_back(std::move(sent));
  }
  return loading;
}

StepCosts::StepCosts(const Executions& executions, const ModuleCost& cost,
                     const std::vector<Collective>& collectives, const LinkModel* links)
    : executions_(&executions), cost_(&cost), links_(links) {
  for (const Collective& one : collectives) collectives_[one.instruction].push_back(&one);
}

StepCost StepCosts::of(const InstructionIndex& in, const HloInstruction& one) const {
  StepCost made;
  add_collectives(one, 0, made);
  made.host = host_traffic(executions_->module(), in, one);
  if (!links_) return made;
  const HardwareFigures& figures = links_->figures();
  const HloCost& cost = cost_->of(one);
  for (const auto& [type, count] : cost.operations)
    if (count.matrix > 0)
      made.compute_seconds +=
          rate_seconds(count.matrix, figures.matrix_rate(pjrt::to_string(type)));
  made.memory_seconds = rate_seconds(cost.memory_bytes, figures.memory_bandwidth);
  made.from_host_seconds = rate_seconds(made.host.from_host, figures.host_bandwidth);
  made.to_host_seconds = rate_seconds(made.host.to_host, figures.host_bandwidth);
  return made;
}

void StepCosts::add_collectives(const HloInstruction& one, int depth, StepCost& to) const {
  if (auto found = collectives_.find(one.name); found != collectives_.end())
    for (const Collective* each : found->second) {
      to.collectives.push_back(each);
      to.link_bytes += static_cast<double>(each->bytes());
    }
  if (depth > kMostNesting || (one.opcode != "fusion" && one.opcode != "async-start")) return;
  if (const InstructionIndex* inside = executions_->module().called(one))
    for (const HloInstruction& each : inside->computation().instructions)
      add_collectives(each, depth + 1, to);
}

std::string HostTransfers::to_string() const {
  std::string text = cat("host memory: ", host_bytes_text(from_host), " from the host and ",
                         host_bytes_text(to_host), " to it in ", executions,
                         executions == 1 ? " transfer a run" : " transfers a run");
  if (seconds > 0) append(text, ", about ", time_text(seconds));
  return text;
}

HostTransfers host_transfers_of(const StepCosts& costs) {
  HostTransfers sum;
  double from_seconds = 0, to_seconds = 0;
  for (const ReachedComputation& each : costs.executions().calls().callers_first()) {
    const ComputationRuns& runs = *costs.executions().find(each.index->computation().id);
    // The computation of an asynchronous instruction counts at its start.
    if (runs.fused || runs.applied || (each.call && each.call->opcode == "async-start")) continue;
    auto times = static_cast<double>(runs.executions);
    for (const HloInstruction& one : each.index->computation().instructions) {
      HostTraffic moved = host_traffic(costs.executions().module(), *each.index, one);
      if (moved == HostTraffic()) continue;
      StepCost cost = costs.of(*each.index, one);
      sum.from_host += times * moved.from_host;
      sum.to_host += times * moved.to_host;
      sum.executions = saturating_add(sum.executions, runs.executions);
      from_seconds += times * cost.from_host_seconds;
      to_seconds += times * cost.to_host_seconds;
    }
  }
  sum.seconds = std::max(from_seconds, to_seconds);
  return sum;
}

bool starts_asynchronous(const ModuleIndex& module, const HloInstruction& one) {
  return one.opcode.ends_with("-start") || one.opcode == "send" || one.opcode == "recv" ||
         contains_call(module, one, "AsyncCollectiveStart");
}

bool ends_asynchronous(const ModuleIndex& module, const HloInstruction& one) {
  return one.opcode.ends_with("-done") || contains_call(module, one, "AsyncCollectiveDone");
}

AsynchronousPairs::AsynchronousPairs(const ModuleIndex& module, const InstructionIndex& in) {
  std::unordered_map<std::int64_t, const HloInstruction*> on_channel;
  for (const HloInstruction* one : in.in_run_order()) {
    if (starts_asynchronous(module, *one)) {
      if (auto channel = channel_in(module, *one)) on_channel[*channel] = one;
    } else if (ends_asynchronous(module, *one)) {
      if (auto channel = channel_in(module, *one)) {
        if (auto found = on_channel.find(*channel); found != on_channel.end())
          start_of_[one] = found->second;
        continue;
      }
      const HloInstruction* at = in.operand(*one, 0);
      for (int step = 0; at && step < kMostOperands; ++step) {
        if (starts_asynchronous(module, *at)) {
          start_of_[one] = at;
          break;
        }
        at = in.operand(*at, 0);
      }
    }
  }
}

const HloInstruction* AsynchronousPairs::start_of(const HloInstruction& end) const {
  auto found = start_of_.find(&end);
  return found == start_of_.end() ? nullptr : found->second;
}

}  // namespace meshard

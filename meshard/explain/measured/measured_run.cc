#include "meshard/explain/measured/measured_run.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/saturating.h"
#include "meshard/explain/byte_text.h"
#include "meshard/explain/cost/step_cost.h"
#include "meshard/hlo/executions.h"

namespace meshard {
namespace {

using Span = std::pair<double, double>;  // begin and end

constexpr std::size_t kMostNames = 10;

// Merges overlapping spans.
std::vector<Span> merged(std::vector<Span> spans) {
  std::ranges::sort(spans);
  std::vector<Span> whole;
  for (const Span& each : spans) {
    if (!whole.empty() && each.first <= whole.back().second) {
      whole.back().second = std::max(whole.back().second, each.second);
    } else {
      whole.push_back(each);
    }
  }
  return whole;
}

double length(const std::vector<Span>& spans) {
  double sum = 0;
  for (const Span& each : spans) sum += each.second - each.first;
  return sum;
}

// The length of what two lists of merged spans have in common.
double common(const std::vector<Span>& a, const std::vector<Span>& b) {
  double sum = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    sum += std::max(0.0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    if (a[i].second < b[j].second) {
      ++i;
    } else {
      ++j;
    }
  }
  return sum;
}

// What an instruction's events mean.
struct Role {
  enum class Kind { kStep, kEncloses, kCollective, kStart, kDone } kind = Kind::kStep;
  // The collectives' kind and axes, as CommunicationTime has them.
  std::string collective = {}, axes = {};
  // For a done: the start.
  const HloInstruction* start = nullptr;
  const HloInstruction* self = nullptr;
  std::int64_t executions = 1;
};

std::string module_name(std::string_view text) {
  return std::string(text.substr(0, text.find('(')));
}

class Measurement {
 public:
  Measurement(const StepCosts& costs, const std::vector<Collective>& collectives)
      : costs_(costs), collectives_(collectives) {
    for (const ReachedComputation& each : costs.executions().calls().callers_first()) {
      const ComputationRuns& runs = *costs.executions().find(each.index->computation().id);
      if (runs.fused || runs.applied || (each.call && each.call->opcode == "async-start")) continue;
      add_roles(*each.index, runs.executions);
    }
  }

  Result<MeasuredRun> run(const std::vector<TraceOp>& ops, std::vector<TimelineEntry>& timeline) {
    MESHARD_RETURN_IF_ERROR(sort(ops));
    for (auto& [name, device] : devices_) finish(device);
    MeasuredRun made = sums();
    for (TimelineEntry& entry : timeline)
      if (auto found = times_.find(entry.instruction); found != times_.end())
        entry.measured_seconds = found->second.second / found->second.first;
    return made;
  }

 private:
  struct Device {
    std::vector<Span> steps, enclosing, transfers;
    std::map<std::pair<std::string, std::string>, std::vector<Span>> by_kind;
    std::map<const HloInstruction*, std::vector<Span>> starts, dones;
    std::set<std::string> runs;
    std::map<const HloInstruction*, double> events;
  };

  void add_roles(const InstructionIndex& in, std::int64_t executions) {
    const ModuleIndex& module = costs_.executions().module();
    AsynchronousPairs pairs(module, in);
    for (const HloInstruction& one : in.computation().instructions) {
      Role role{.self = &one, .executions = executions};
      StepCost cost = costs_.of(in, one);
      for (const Collective* each : cost.collectives) {
        if (each->continues) continue;
        role.collective = to_string(each->kind);
        role.axes = each->axes ? join(*each->axes, ", ") : "";
      }
      if (one.opcode == "while" || one.opcode == "conditional" || one.opcode == "call") {
        role.kind = Role::Kind::kEncloses;
      } else if (ends_asynchronous(module, one)) {
        role.start = pairs.start_of(one);
        if (role.start) role.kind = Role::Kind::kDone;
      } else if (starts_asynchronous(module, one)) {
        role.kind = role.collective.empty() ? Role::Kind::kStep : Role::Kind::kStart;
      } else if (!role.collective.empty() && costs_.cost().of(one).matrix_flops() == 0) {
        role.kind = Role::Kind::kCollective;
      }
      roles_.emplace(one.name, std::move(role));
    }
  }

  // Assigns the events to devices and roles.
  Result<void> sort(const std::vector<TraceOp>& ops) {
    const std::string own = module_name(costs_.executions().module().module().name);
    std::set<std::string> others;
    for (const TraceOp& op : ops) {
      std::string module = module_name(op.module);
      if (!module.empty() && module != own) {
        others.insert(module);
        continue;
      }
      std::string_view name = op.op;
      if (name.starts_with('%')) name.remove_prefix(1);
      auto found = roles_.find(std::string(name));
      if (found == roles_.end()) {
        ++unmatched_;
        unmatched_names_.insert(std::string(name));
        continue;
      }
      ++matched_;
      add(op, found->second);
    }
    if (matched_ > 0) return {};
    return Error(
        ErrorCode::kInvalidArgument,
        cat("[explain] the trace has no step of the program ", own,
            others.empty() ? std::string() : cat("; it has steps of ", join(others, ", "))));
  }

  void add(const TraceOp& op, const Role& role) {
    Device& device = devices_[op.device];
    Span span{op.start, op.start + op.seconds};
    if (!op.run.empty()) device.runs.insert(op.run);
    ++device.events[role.self];
    switch (role.kind) {
      case Role::Kind::kEncloses: device.enclosing.push_back(span); break;
      case Role::Kind::kStep: device.steps.push_back(span); break;
      case Role::Kind::kCollective:
        device.transfers.push_back(span);
        device.by_kind[{role.collective, role.axes}].push_back(span);
        break;
      case Role::Kind::kStart: device.starts[role.self].push_back(span); break;
      case Role::Kind::kDone: device.dones[role.start].push_back(span); break;
    }
    if (role.kind != Role::Kind::kStart && role.kind != Role::Kind::kDone)
      count(role.self->name, op.seconds);
  }

  void count(const std::string& name, double seconds) {
    auto& [events, sum] = times_[name];
    events += 1;
    sum += seconds;
  }

  // Pairs starts with dones, in their order.
  void finish(Device& device) {
    for (auto& [start, begins] : device.starts) {
      std::vector<Span>& ends = device.dones[start];
      std::ranges::sort(begins);
      std::ranges::sort(ends);
      const Role& role = roles_.at(start->name);
      for (std::size_t i = 0; i < begins.size(); ++i) {
        Span span = begins[i];
        if (i < ends.size()) span.second = std::max(span.second, ends[i].second);
        device.transfers.push_back(span);
        device.by_kind[{role.collective, role.axes}].push_back(span);
        count(start->name, span.second - span.first);
      }
    }
    for (auto* spans : {&device.steps, &device.transfers}) *spans = merged(std::move(*spans));
  }

  std::int64_t runs_of(const Device& device) const {
    if (!device.runs.empty()) return std::ssize(device.runs);
    double most = 1;
    for (const auto& [instruction, events] : device.events)
      most = std::max(most, events / static_cast<double>(std::max<std::int64_t>(
                                         1, roles_.at(instruction->name).executions)));
    return static_cast<std::int64_t>(most);
  }

  MeasuredRun sums() const {
    MeasuredRun made{.devices = std::ssize(devices_),
                     .matched_events = matched_,
                     .unmatched_events = unmatched_};
    std::map<std::pair<std::string, std::string>, TransferTime> by_kind;
    double all_runs = 0;
    for (const auto& [name, device] : devices_) {
      std::int64_t runs = runs_of(device);
      made.runs = std::max(made.runs, runs);
      all_runs += static_cast<double>(runs);
      std::vector<Span> busy = device.steps;
      busy.insert(busy.end(), device.transfers.begin(), device.transfers.end());
      busy.insert(busy.end(), device.enclosing.begin(), device.enclosing.end());
      made.seconds += length(merged(std::move(busy)));
      add_transfers(device, device.transfers, made.links);
      for (const auto& [kind, spans] : device.by_kind)
        add_transfers(device, merged(spans), by_kind[kind]);
    }
    made.seconds /= all_runs;
    divide(made.links, all_runs);
    for (auto& [kind, time] : by_kind) {
      divide(time, all_runs);
      CommunicationTime one{.kind = kind.first, .axes = kind.second, .time = time};
      for (const Collective& each : collectives_)
        if (to_string(each.kind) == kind.first &&
            (each.axes ? join(*each.axes, ", ") : "") == kind.second) {
          ++one.collectives;
          one.executions = saturating_add(one.executions, each.executions);
        }
      made.communication.push_back(std::move(one));
    }
    std::ranges::stable_sort(made.communication,
                             [](const CommunicationTime& a, const CommunicationTime& b) {
                               return a.time.exposed_seconds > b.time.exposed_seconds;
                             });
    for (const std::string& name : unmatched_names_)
      if (made.unmatched.size() < kMostNames) made.unmatched.push_back(name);
    return made;
  }

  static void add_transfers(const Device& device, const std::vector<Span>& spans,
                            TransferTime& to) {
    double hidden = common(spans, device.steps);
    to.hidden_seconds += hidden;
    to.exposed_seconds += length(spans) - hidden;
  }
  static void divide(TransferTime& time, double by) {
    time.hidden_seconds /= by;
    time.exposed_seconds /= by;
  }

  const StepCosts& costs_;
  const std::vector<Collective>& collectives_;
  std::unordered_map<std::string, Role> roles_;
  std::map<std::string, Device> devices_;
  std::unordered_map<std::string, std::pair<double, double>> times_;  // events, seconds
  std::int64_t matched_ = 0, unmatched_ = 0;
  std::set<std::string> unmatched_names_;
};

}  // namespace

std::string MeasuredRun::to_string(const std::optional<Schedule>& estimate) const {
  std::string text =
      cat("measured ", time_text(seconds), " a run (mean of ", runs, runs == 1 ? " run" : " runs",
          " on ", devices,
          devices == 1 ? " device): " : " devices): ", time_text(links.exposed_seconds),
          " exposed communication (", time_text(links.hidden_seconds), " hidden); ", matched_events,
          " events");
  if (unmatched_events > 0)
    append(text, ", ", unmatched_events, " of other instructions (", join(unmatched, ", "), ")");
  for (const CommunicationTime& one : communication) {
    append(text, "\n  ", one.kind, one.axes.empty() ? "" : " along ", one.axes, ": ",
           time_text(one.time.exposed_seconds), " exposed, ", time_text(one.time.hidden_seconds),
           " hidden");
    if (!estimate) continue;
    for (const CommunicationTime& each : estimate->communication)
      if (each.kind == one.kind && each.axes == one.axes)
        append(text, "; estimated ", time_text(each.time.exposed_seconds), " and ",
               time_text(each.time.hidden_seconds));
  }
  return text;
}

Result<MeasuredRun> measure(const std::vector<TraceOp>& ops, const StepCosts& costs,
                            const std::vector<Collective>& collectives,
                            std::vector<TimelineEntry>& timeline) {
  return Measurement(costs, collectives).run(ops, timeline);
}

}  // namespace meshard

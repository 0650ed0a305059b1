// Times of a compiled program: lower bounds, steps, and an estimate from the order of its
// instructions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "meshard/base/enum_names.h"
#include "meshard/base/field_notes.h"
#include "meshard/base/fields.h"
#include "meshard/explain/collectives/collective.h"
#include "meshard/explain/cost/link_use.h"
#include "meshard/explain/cost/module_cost.h"
#include "meshard/explain/cost/step_cost.h"
#include "meshard/graph/graph.h"

namespace meshard {

/// Value type: the work of one run on one device, including loop iterations.
struct ProgramCost {
  /// Multiplications and additions by element type, because matrix units have different rates.
  struct Flops {
    /// `bf16`
    std::string element_type;
    /// Operations in matrix products and convolutions.
    double matrix = 0;
    /// Operations in other ops.
    double other = 0;
    MESHARD_FIELDS(element_type, matrix, other)
    friend bool operator==(const Flops&, const Flops&) = default;
  };
  std::vector<Flops> flops;
  /// Bytes read from and written to the device's main memory.
  double memory_bytes = 0;
  /// Number of exp, tanh, ...
  double transcendentals = 0;
  /// False if a loop's trip count is unknown; such a loop counts as one iteration.
  bool loops_known = true;

  MESHARD_FIELDS(flops, memory_bytes, transcendentals, loops_known)
  double total_flops() const;
  friend bool operator==(const ProgramCost&, const ProgramCost&) = default;
};

/// Value type: the time of collectives over some mesh axes on one kind of link.
struct LinkTime {
  /// The axes by name, `"data"`; empty if unknown.
  std::string axes;
  /// `ICI`, `DCN`, `NVLink`, `InfiniBand`; `device link` and `process link` if LinkOptions give
  /// them.
  std::string link;
  /// Bytes over the device's links, in all executions.
  double bytes = 0;
  double seconds = 0;
  MESHARD_FIELDS(axes, link, bytes, seconds)
  friend bool operator==(const LinkTime&, const LinkTime&) = default;
};

/// Value type: lower bounds for the time of one run on one device. The bounds assume full overlap
/// with each other. A conditional counts as its costliest branch.
struct Roofline {
  double compute_seconds = 0;
  double memory_seconds = 0;
  /// A bound for each list of axes on its own. Those over different links may overlap.
  std::vector<LinkTime> links;
  /// A bound for all collectives together, if they overlap where they use different links. None in
  /// reports of earlier versions.
  std::optional<double> communication_seconds = std::nullopt;
  /// False if the hardware's figures are unknown: only links whose figures were given count.
  bool rates_known = true;
  /// The published or given figures that were used, with their sources.
  std::vector<std::string> sources;

  MESHARD_WRITTEN_FIELDS(compute_seconds, memory_seconds, links, communication_seconds, rates_known,
                         sources, seconds(), seconds_in_sequence(), bound_by())
  static constexpr FieldNotes kFieldNotes{.later = "communication_seconds rates_known"};
  /// `communication_seconds`; if it is not known, the sum over the links.
  double link_seconds() const;
  /// The largest of the three bounds; no run can be faster.
  double seconds() const;
  /// compute + memory + the sum over the links: a lower bound for the time without any overlap.
  double seconds_in_sequence() const;
  /// `compute`, `memory` or `communication`
  std::string_view bound_by() const;
  friend bool operator==(const Roofline&, const Roofline&) = default;
};

/// Value type: one step of the module, in execution order.
struct TimelineEntry {
  enum class Kind { kCompute, kCollective, kCopy, kLoop, kOther };
  Kind kind = Kind::kOther;
  std::string instruction;
  /// `fusion`, `dot`, `all-reduce`, ...
  std::string opcode;
  /// Nesting level: entries of a loop's body follow the loop, one level deeper.
  int depth = 0;
  std::int64_t executions = 1;
  /// Per execution.
  double flops = 0, memory_bytes = 0, link_bytes = 0;
  /// Bytes from and to host memory, per execution.
  double host_bytes = 0;
  /// Estimated time per execution, on its own: the longest of computation, memory, links and host
  /// transfers. 0 if the hardware's figures are unknown.
  double seconds = 0;
  /// For a step that performs or starts transfers over links or to the host: how much of their time
  /// runs behind computation, per execution (Schedule).
  double hidden_seconds = 0;
  /// How much of that time the device waits for, per execution.
  double exposed_seconds = 0;
  /// Mean time per execution in a trace; none if there is no trace, or it lacks the step.
  std::optional<double> measured_seconds = std::nullopt;
  /// The source line; empty if unknown.
  std::string place;

  MESHARD_FIELDS(kind, instruction, opcode, depth, executions, flops, memory_bytes, link_bytes,
                 seconds, host_bytes, hidden_seconds, exposed_seconds, measured_seconds, place)
  static constexpr FieldNotes kFieldNotes{
      .later = "host_bytes hidden_seconds exposed_seconds measured_seconds"};
  friend bool operator==(const TimelineEntry&, const TimelineEntry&) = default;
};

template <>
struct EnumNames<TimelineEntry::Kind> {
  using enum TimelineEntry::Kind;
  static constexpr EnumName<TimelineEntry::Kind> kNames[] = {{kCompute, "compute"},
                                                             {kCollective, "collective"},
                                                             {kCopy, "copy"},
                                                             {kLoop, "loop"},
                                                             {kOther, "other"}};
};

/// Value type: the time of transfers, divided into what runs behind computation and the rest.
struct TransferTime {
  /// Behind computation.
  double hidden_seconds = 0;
  /// The device waits.
  double exposed_seconds = 0;

  MESHARD_FIELDS(hidden_seconds, exposed_seconds)
  friend bool operator==(const TransferTime&, const TransferTime&) = default;
};

/// Value type: the time of the collectives of one kind over the same axes, in one run.
struct CommunicationTime {
  /// `all-gather`, or `custom call` for data that custom calls send.
  std::string kind;
  /// The axes by name, `"data"`; empty if unknown.
  std::string axes;
  /// Number of instructions.
  std::int64_t collectives = 0;
  /// How often they run.
  std::int64_t executions = 0;
  TransferTime time = {};

  MESHARD_FIELDS(kind, axes, collectives, executions, time)
  static constexpr FieldNotes kFieldNotes{.inlined = "time"};
  friend bool operator==(const CommunicationTime&, const CommunicationTime&) = default;
};

/// Value type: an estimate of the time of one run on one device.
struct Schedule {
  double seconds = 0;
  /// The part in which the device computes or moves data in its memory.
  double busy_seconds = 0;
  /// Communication between devices. `exposed_seconds` is the part of `seconds` in which the device
  /// waits for it. Collectives that run at the same time may wait at the same time, so the exposed
  /// times of `communication` may add up to more.
  TransferTime links = {};
  /// The same for transfers from and to host memory.
  TransferTime host = {};
  /// Longest exposed time first.
  std::vector<CommunicationTime> communication = {};

  MESHARD_FIELDS(seconds, busy_seconds, links, host, communication)
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// The schedule, and the transfers that each instruction starts, in one of its executions.
struct SimulatedSchedule {
  Schedule schedule;
  std::unordered_map<const HloInstruction*, TransferTime> steps;
};

/// Simulates the instructions in execution order, each as fast as StepCosts says.
/// - A step takes as long as its computation or its memory traffic, whichever is longer.
/// - Asynchronous collectives, copies and host transfers run from their start to their done; the
///   device waits at the done for the rest of their time. Asynchronous collectives are start and
///   done instructions, async-start, sends and receives, and the fusions in which TPU compilers
///   wrap `AsyncCollectiveStart` and `AsyncCollectiveDone`. A transfer that is not done when its
///   computation ends is waited for there. Asynchronous computation counts at its start.
/// - Collectives that use the same links run one after the other, others at the same time. In a
///   grid of chips, these are collectives that share a mesh axis; elsewhere, all. A collective over
///   slices has its part within the slice first. Host transfers in each direction run one after the
///   other.
/// - Memory has one queue: what asynchronous instructions move waits for the steps' own traffic.
/// - A collective that is not asynchronous is exposed, unless it is in a fusion with matrix
///   products, whose time hides it.
/// - A loop takes its body's time in each iteration (one, if the number is unknown), a conditional
///   that of its longest branch.
///
/// @param bound the result is not below it, except in programs with conditional collectives, whose
/// branches the bound adds up
/// @pre costs.links() is not null
SimulatedSchedule simulate_schedule(const StepCosts& costs,
                                    const std::vector<Collective>& collectives,
                                    const Roofline& bound);

/// The cost of one run on one device, in the form used by the report.
ProgramCost program_cost(const ModuleCost& cost);

/// A lower bound for the time, from the hardware's published rates.
///
/// - compute: matrix products and convolutions of each type at that type's rate. Element-wise
///   operations have no published rate; they are nearly always memory-bound.
/// - memory: ProgramCost::memory_bytes at the memory bandwidth.
/// - links: all executions of each collective, by LinkModel, with one entry for each list of axes
///   and kind of link. Different kinds of links, and different links of a grid, run concurrently.
Roofline roofline_of(const ProgramCost& cost, const std::vector<Collective>& collectives,
                     const LinkModel& links);

/// The module's steps in execution order. Steps are the instructions that compute, move or wait for
/// data, each listed once. A loop, call or conditional comes before its steps, which are one level
/// deeper; a fusion is one step. Steps of a shared computation are listed at its first call. At
/// most 200,000 steps.
///
/// @param simulated the transfers' hidden and exposed times; null: not known
/// @param graph as in find_collectives
std::vector<TimelineEntry> timeline_of(const StepCosts& costs, const SimulatedSchedule* simulated,
                                       const Graph* graph);

}  // namespace meshard

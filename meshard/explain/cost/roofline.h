// Lower bounds for a compiled program's time, from its counts and the hardware's figures.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/enum_names.h"
#include "meshard/base/field_notes.h"
#include "meshard/base/fields.h"
#include "meshard/mesh/axis_ref.h"

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

inline std::string_view to_string(TimelineEntry::Kind kind) { return enum_name(kind); }

}  // namespace meshard

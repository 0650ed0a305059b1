// Lower bounds for a compiled program's time, from its counts and the hardware's figures.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/mesh/axis_ref.h"

namespace meshard {

/// Value type: the work of one run on one device, including loop iterations.
struct ProgramCost {
  /// Multiplications and additions by element type, because matrix units have different rates.
  struct Flops {
    std::string element_type;  // `bf16`
    /// Operations in matrix products and convolutions, and in other ops.
    double matrix = 0, other = 0;
    friend bool operator==(const Flops&, const Flops&) = default;
  };
  std::vector<Flops> flops;
  /// Bytes read from and written to the device's main memory.
  double memory_bytes = 0;
  /// Number of exp, tanh, ...
  double transcendentals = 0;
  /// False if a loop's trip count is unknown; such a loop counts as one iteration.
  bool loops_known = true;

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
  friend bool operator==(const LinkTime&, const LinkTime&) = default;
};

/// Value type: lower bounds for the time of one run on one device. Each bound assumes no overlap
/// within it, and full overlap with the others.
struct Roofline {
  double compute_seconds = 0;
  double memory_seconds = 0;
  std::vector<LinkTime> links;
  /// False if the hardware's figures are unknown: only links whose figures were given count.
  bool rates_known = true;
  /// The published or given figures that were used, with their sources.
  std::vector<std::string> sources;

  /// Sum over the links.
  double link_seconds() const;
  /// The largest of the three bounds; no run can be faster.
  double seconds() const;
  /// The sum of the three bounds: the time without any overlap.
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
  double flops = 0, memory_bytes = 0, link_bytes = 0;  // per execution
  /// Time per execution by the roofline. 0 if the hardware's figures are unknown.
  double seconds = 0;
  std::string place;
  friend bool operator==(const TimelineEntry&, const TimelineEntry&) = default;
};

std::string_view to_string(TimelineEntry::Kind kind);

}  // namespace meshard

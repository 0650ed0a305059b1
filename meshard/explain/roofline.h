// How long a compiled program takes at least, from its counts and the hardware's figures.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/mesh/axis_ref.h"

namespace meshard {

/// A value: what one device's program does each time it runs, loops counted.
struct ProgramCost {
  /// Multiplications and additions, by the type they are done in: matrix units are faster for some.
  struct Flops {
    std::string element_type;  // `bf16`
    /// In matrix products and convolutions, and elsewhere.
    double matrix = 0, other = 0;
    friend bool operator==(const Flops&, const Flops&) = default;
  };
  std::vector<Flops> flops;
  /// Read from and written to the device's main memory.
  double memory_bytes = 0;
  /// exp, tanh, ...
  double transcendentals = 0;
  /// False if a loop's trip count is not known: it counts once.
  bool loops_known = true;

  double total_flops() const;
  friend bool operator==(const ProgramCost&, const ProgramCost&) = default;
};

/// A value: the time that collectives over some mesh axes need on one kind of link.
struct LinkTime {
  /// The axes by name, `"data"`; empty: not known.
  std::string axes;
  /// `ICI`, `DCN`, `NVLink`, `InfiniBand`
  std::string link;
  /// Bytes over the device's links, all executions.
  double bytes = 0;
  double seconds = 0;
  friend bool operator==(const LinkTime&, const LinkTime&) = default;
};

/// A value: lower bounds of a step's time on one device. Nothing overlaps within a bound; between
/// them everything may.
struct Roofline {
  double compute_seconds = 0;
  double memory_seconds = 0;
  std::vector<LinkTime> links;
  /// The published figures that were used, each with its source.
  std::vector<std::string> sources;

  /// Sum over the links.
  double link_seconds() const;
  /// The largest of the three: no step is faster.
  double seconds() const;
  /// Their sum: the time if nothing overlaps.
  double seconds_in_sequence() const;
  /// `compute`, `memory` or `communication`
  std::string_view bound_by() const;
  friend bool operator==(const Roofline&, const Roofline&) = default;
};

/// A value: one step of the module, in the order in which the device runs it.
struct TimelineEntry {
  enum class Kind { kCompute, kCollective, kCopy, kLoop, kOther };
  Kind kind = Kind::kOther;
  std::string instruction;
  /// `fusion`, `dot`, `all-reduce`, ...
  std::string opcode;
  /// Nesting: entries of a loop's body follow it, one deeper.
  int depth = 0;
  std::int64_t executions = 1;
  double flops = 0, memory_bytes = 0, link_bytes = 0;  // each time
  /// By the roofline, each time. 0 without the hardware's figures.
  double seconds = 0;
  std::string place;
  friend bool operator==(const TimelineEntry&, const TimelineEntry&) = default;
};

std::string_view to_string(TimelineEntry::Kind kind);

}  // namespace meshard

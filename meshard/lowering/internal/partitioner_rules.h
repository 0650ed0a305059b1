// Faults of XLA's partitioner and its runtimes inside manual regions, and how lowering avoids them.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "meshard/graph/annotation.h"
#include "meshard/graph/node.h"

namespace meshard {

/// What is written instead of the op itself.
enum class Rewrite {
  kWhole,         ///< operands and results are gathered over the axes that are not manual
  kByAllDevices,  ///< all devices run all branches, or all turns, and select their own values
};

/// A value: one fault, the ops that have it, and what is written instead.
struct PartitionerRule {
  /// As on the page of limits.
  std::string_view name;
  Rewrite rewrite;
  /// The platform whose compiler or runtime has the fault; empty: all.
  std::string_view platform;
  /// Where it was seen.
  std::string_view seen;
  /// What goes wrong, with a reference.
  std::string_view reason;
  /// True if the op of a node inside manual axes has the fault.
  bool (*matches)(const Node& node, const ManualAxes& place);
};

/// All rules. The first one that matches counts.
std::span<const PartitionerRule> partitioner_rules();

/// The rule for a node; nullptr if it is written as it is. `place`: its manual axes.
const PartitionerRule* partitioner_rule(const Node& node, const ManualAxes& place,
                                        bool for_xla_cpu);

/// The number of devices along the axes that are not manual.
std::int64_t automatic_size(const ManualAxes& place);

}  // namespace meshard

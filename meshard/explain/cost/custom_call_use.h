// Custom calls in a report, and the costs that a user gives for them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/base/result.h"
#include "meshard/explain/cost/custom_calls.h"
#include "meshard/graph/graph.h"

namespace meshard {

/// Value type: custom calls of one name and place. Sums are over all their executions in one run on
/// one device.
struct CustomCallUse {
  /// The kernel's name, otherwise the target: see CustomCall.
  std::string name;
  std::string target;
  std::int64_t count = 0, executions = 0;
  std::int64_t operand_bytes = 0, result_bytes = 0;
  /// Where the three next figures come from. They are 0 if it is unknown.
  CustomCallSource source = CustomCallSource::kUnknown;
  double flops = 0, memory_bytes = 0, link_bytes = 0;
  /// True if it sends data to other devices.
  bool communicates = false;
  /// The source line, or the op; empty if unknown.
  std::string place;

  MESHARD_FIELDS(name, target, count, executions, operand_bytes, result_bytes, source, flops,
                 memory_bytes, link_bytes, communicates, place)
  /// `2 custom calls mymm (tpu_custom_call) x 8, 12 MiB, stated 0.5 Gflop and 5 MiB, kernel.py:12`
  std::string to_string() const;
  friend bool operator==(const CustomCallUse&, const CustomCallUse&) = default;
};

/// Value type: the cost that a user gives for the custom calls of one name.
struct GivenCost {
  /// A CustomCall's name, target, or instruction.
  std::string name;
  CustomCallCost cost;

  /// Parses `name=flops,bytes` or `name=flops,bytes,link bytes`, for one execution on one device:
  /// `my_kernel=2e9,64MiB,1MB`. Units of bytes: B, KB, MB, GB, KiB, MiB, GiB; without one, bytes.
  /// @error invalid argument
  static Result<GivenCost> parse(std::string_view text);
  friend bool operator==(const GivenCost&, const GivenCost&) = default;
};

/// Sets the costs of custom calls that have a given name. If several are given, the last counts.
/// @error invalid argument: no custom call has the name; the message lists those that there are
Result<void> give_costs(const std::vector<GivenCost>& given, std::vector<CustomCall>& calls);

/// The custom calls by name and place, in order of first appearance.
/// @param graph as in find_collectives
std::vector<CustomCallUse> group_custom_calls(const Executions& executions,
                                              const std::vector<CustomCall>& calls,
                                              const Graph* graph);

/// What is missing in the report's times because of custom calls; empty if nothing is.
std::vector<std::string> custom_call_notes(const std::vector<CustomCallUse>& uses);

}  // namespace meshard

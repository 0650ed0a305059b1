// The mesh axes over which an op exchanges data, from the shardings of its operands and results.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "meshard/sharding/sharding.h"
#include "meshard/sharding/sharding_rule.h"

namespace meshard {

/// The axes over which a value is the sum of the parts on the devices: the axes that are unreduced
/// by sums. Along axes that are unreduced by a maximum or a minimum, every device holds the same
/// part
/// of the value, which is the maximum and the minimum of its copies.
AxisList summed_axes(const Sharding& sharding);

/// A value: axes over which devices exchange the parts of one operand.
struct AxisMove {
  AxisList axes;
  std::size_t operand = 0;
  /// `{"x"} splits dimension 1 of operand 0, which the op sums over`
  std::string why;
};

/// The axes over which devices exchange data when an op is computed for these results. A device
/// that takes a part of its own shard exchanges nothing. An axis of size 1 may be listed.
///
/// An axis of an operand moves if it splits a dimension that the op sums over, needs whole or
/// shifts; if the result is not split so; or if the operand is a sum over it, and the result is
/// not.
/// @pre as many operands and results as the rule has, of the ranks of the rule, over one mesh
std::vector<AxisMove> axis_moves(const ShardingRule& rule, std::span<const Sharding> operands,
                                 std::span<const Sharding> results);

/// The axes over which devices exchange data when a value is resharded.
/// @pre both are over one mesh
std::vector<AxisMove> axis_moves(const Sharding& from, const Sharding& to);

}  // namespace meshard

// The shardings of an op's results, from those of its operands.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meshard/sharding/sharding.h"
#include "meshard/sharding/sharding_rule.h"

namespace meshard {

/// A value: why no sharding of the results follows from the operands.
struct ShardingConflict {
  /// The factor it is about; none if it is about a whole tensor.
  std::optional<int> factor;
  /// In words, with both sides: `factor j is split by {"x"} in operand 0 and by {"y"} in operand
  /// 1`.
  std::string message;
};

/// A value: the shardings of the results, or a conflict.
struct Propagation {
  std::vector<Sharding> results;
  /// Axes that split reduction factors: the op ends with an all-reduce over them.
  AxisList reduced;
  /// Axes that split factors which the op needs whole: it begins with an all-gather over them.
  AxisList gathered;
  std::optional<ShardingConflict> conflict;

  bool ok() const { return !conflict; }
};

/// Shardings of the results of an op with this rule whose operands are sharded so, without any
/// reshard.
///
/// Each factor is split as in the operands that have it; where one operand's axes continue
/// another's, the longer list counts (unsplit dimensions are continued by anything). A conflict:
/// two operands split a factor differently; an axis would split two factors; the axes of a
/// dimension do not fall on its factors; a result dimension would be strided; an operand is
/// unreduced. Result dimensions are closed.
/// @error operands of other number or rank than the rule's; no operand; operands on different
/// meshes.
Propagation propagate(const ShardingRule& rule, std::span<const Sharding> operands);

}  // namespace meshard

// Ops that cut off the ends of dimensions, or append to them: elements only shift.
#pragma once
#include <optional>
#include <span>

#include "meshard/array/shape.h"
#include "meshard/sharding/sharding_rule.h"
#include "meshard/stablehlo/module.h"

namespace meshard {

/// A value: the rule of an op that shifts elements.
struct ShiftedRule {
  ShardingRule rule;
  /// True if the shift is 0: no data moves if the shards of both sizes are equal, as for the
  /// padding that makes a sharding even.
  bool keeps_indices = false;
};

/// The rule of a slice without strides, or of a pad without padding between elements, if it keeps
/// more than half of each dimension. A dimension whose size changes is one permutation factor, of
/// the larger size, as in Shardy (openxla/shardy, op_sharding_rule_registry.cc): neighbors exchange
/// the borders of their shards.
/// @return none for any other op
std::optional<ShiftedRule> shifted_rule(const stablehlo::Module& module,
                                        const stablehlo::ModuleOp& op,
                                        std::span<const TensorType> operands,
                                        std::span<const TensorType> results);

}  // namespace meshard

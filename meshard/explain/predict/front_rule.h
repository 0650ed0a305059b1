// Ops that cut off the end of dimensions, or append to it: all elements keep their indices.
#pragma once
#include <optional>
#include <span>

#include "meshard/array/shape.h"
#include "meshard/sharding/sharding_rule.h"
#include "meshard/stablehlo/module.h"

namespace meshard {

/// The rule of a slice that keeps the front of each dimension, or of a pad at the ends. A dimension
/// whose size changes is a permutation factor of the larger size: no data moves if the shards of
/// both sizes are equal, as for the padding that makes a sharding even.
/// @return none for any other op
std::optional<ShardingRule> front_rule(const stablehlo::Module& module,
                                       const stablehlo::ModuleOp& op,
                                       std::span<const TensorType> operands,
                                       std::span<const TensorType> results);

}  // namespace meshard

// What a module's text says of ops that have no rule of their own: collectives, custom calls, and
// the borders of manual computations.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/explain/predict/ruled_program.h"
#include "meshard/stablehlo/module.h"

namespace meshard {

/// The collective that an op is; none for any other op.
std::optional<StatedCollective> collective_of(const stablehlo::Module& module,
                                              const stablehlo::ModuleOp& op);

/// The rule for operand i and result i of ops that may change sizes: collectives, and the border of
/// a manual computation. Dimensions of equal size correspond; others are independent.
/// @return none if the numbers of values or their ranks differ
std::optional<ShardingRule> rule_by_sizes(std::span<const TensorType> operands,
                                          std::span<const TensorType> results);

/// The rule of an op that the compiler knows nothing about: each device needs all of it.
ShardingRule whole_rule(std::span<const TensorType> operands, std::span<const TensorType> results);

/// The shardings of `#sdy.sharding_per_value<[<@mesh, [{"x"}]>, ...]>` or `[<@mesh, [{"x"}]>,
/// ...]`.
std::vector<std::string_view> shardings_in(std::string_view per_value);

/// The names in `#sdy<manual_axes{"x", "y"}>` or `{"x", "y"}`.
std::vector<std::string> axes_in(std::string_view manual_axes);

}  // namespace meshard

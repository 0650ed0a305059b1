// What a module's text says of ops that have no rule of their own: collectives, custom calls, and
// the borders of manual computations.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/explain/predict/module_program.h"
#include "meshard/sharding/sharding_rule.h"
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

/// The rule of an op without a sharding rule in the compiler: each device needs all of it.
ShardingRule whole_rule(std::span<const TensorType> operands, std::span<const TensorType> results);

/// The shardings of `#sdy.sharding_per_value<[<@mesh, [{"x"}]>, ...]>` or `[<@mesh, [{"x"}]>,
/// ...]`.
std::vector<std::string_view> shardings_in(std::string_view per_value);

/// The names in `#sdy<manual_axes{"x", "y"}>` or `{"x", "y"}`.
std::vector<std::string> axes_in(std::string_view manual_axes);

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

/// The integer constants of a module of which every element is the same, by variable.
using ModuleConstants = std::unordered_map<int, std::int64_t>;
ModuleConstants constants_of(const stablehlo::Module& module);

/// The number of iterations of a `stablehlo.while` that counts from a constant to a constant by
/// constant steps; none for any other loop. A constant may be defined outside of the loop, and
/// carried unchanged.
std::optional<std::int64_t> trips_of(const stablehlo::ModuleOp& loop,
                                     const ModuleConstants& constants);

}  // namespace meshard

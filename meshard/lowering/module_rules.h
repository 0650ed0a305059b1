// The sharding rules of the ops in a module's text, by their mnemonics.
#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/sharding/sharding_rule.h"
#include "meshard/stablehlo/module.h"

namespace meshard {

/// The mnemonics that have a rule. Ops with regions that run (loops, branches, calls) have no rule
/// here.
std::span<const std::string_view> ruled_mnemonics();

/// The sharding rule of an op. It is the rule of the primitive that is lowered to this mnemonic,
/// for the op's attributes and types; a reduction of several tensors has that of each.
/// @param operands, results the types, as many as the op has
/// @return nullopt if the mnemonic has no rule, or if the primitive would not give these results
std::optional<ShardingRule> rule_of_module_op(const stablehlo::Module& module,
                                              const stablehlo::ModuleOp& op,
                                              std::span<const TensorType> operands,
                                              std::span<const TensorType> results);

/// Every dimension is a factor that passes through all operands and results. Operands of rank 0 may
/// be used by results of any rank.
/// @return nullopt if an operand has another shape than the results
std::optional<ShardingRule> element_wise_rule(std::span<const TensorType> operands,
                                              std::span<const TensorType> results);

}  // namespace meshard

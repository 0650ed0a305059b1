// Helpers for the operands of ops that are not element-wise.
#pragma once
#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// The operand as a tensor; a C++ number becomes a tensor of rank 0 in its kind's default dtype.
/// @error invalid argument naming the op, for a tensor without a value.
Tensor operand_tensor(const OpDef& op, const In& x);
/// The same for a composite, which has only a name.
Tensor operand_tensor(std::string_view op, const In& x);

/// A constant tensor with every element equal to `value`.
Tensor filled(const TensorType& type, double value);

/// Checks that an attribute has one entry per dimension of `operand`.
/// @error through call.fail if `count` differs from the operand's rank.
void check_one_each(const OpCall& call, std::string_view what, std::size_t count,
                    const TensorType& operand);

/// Checks an attribute that names a dimension of operand 0.
/// @error through call.fail if it has no such dimension.
void check_dimension(const OpCall& call, std::string_view what, std::int64_t dimension);

/// One factor per dimension of `shape`: all pass through except one, which the op needs whole.
InlineVector<int, 6> factors_with_whole(ShardingRuleBuilder& builder, const Shape& shape,
                                        std::int64_t dimension);

/// The entry of a sharding rule for a tensor whose dimension d has the single factor factors[d].
TensorFactors one_factor_each(const InlineVector<int, 6>& factors);

}  // namespace meshard

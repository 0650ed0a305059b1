// The operand of an op that is not element-wise.
#pragma once
#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// The operand as a tensor: a C++ number becomes a tensor of rank 0 with its kind's default dtype.
/// @error invalid argument naming the op, for a tensor without a value.
Tensor operand_tensor(const OpDef& op, const In& x);
/// The same for a composite, which has a name only.
Tensor operand_tensor(std::string_view op, const In& x);

/// A tensor of `value` everywhere, as part of the program.
Tensor filled(const TensorType& type, double value);

/// Checks an attribute that names `count` entries for the dimensions of `operand`.
/// @error through call.fail if it has another rank.
void check_one_each(const OpCall& call, std::string_view what, std::size_t count,
                    const TensorType& operand);

/// Checks an attribute that names a dimension of operand 0.
/// @error through call.fail if it has no such dimension.
void check_dimension(const OpCall& call, std::string_view what, std::int64_t dimension);

/// A factor for each dimension of a tensor of `shape`, all of which pass through but one that the
/// op needs whole.
InlineVector<int, 6> factors_with_whole(ShardingRuleBuilder& builder, const Shape& shape,
                                        std::int64_t dimension);

/// A sharding rule's tensor of which dimension d is the factor factors[d].
TensorFactors one_factor_each(const InlineVector<int, 6>& factors);

}  // namespace meshard

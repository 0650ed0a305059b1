// Helpers for the operands of ops that are not element-wise.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// The operand as a tensor; a C++ number becomes a tensor of rank 0 in its kind's default dtype.
/// @error invalid argument naming the op, for a tensor without a value.
Tensor operand_tensor(const OpDef& op, const In& x);
/// The same for a composite, which has only a name.
Tensor operand_tensor(std::string_view op, const In& x);

/// Records one call of `op` and returns its results in order.
/// @error as record()
std::vector<Tensor> record_all(const OpDef& op, std::unique_ptr<const Attributes> attributes,
                               std::span<const Tensor> operands, SourceLocation where);

/// Adds the result types that an attribute names as text, `f32[4,8] i32[]`.
/// @error through call.fail: a malformed type, or none
void add_named_types(const OpCall& call, std::string_view text, ResultTypes& results);

/// A constant tensor with every element equal to `value`.
Tensor filled(const TensorType& type, double value);
/// A scalar of the lowest (highest) value of a real dtype: an infinity of floats.
HostArray lowest_of(DType dtype);
HostArray highest_of(DType dtype);

/// The elements `start` to `stop` - 1 along a dimension, which may count from the last.
Tensor slice_along(const Tensor& x, std::int64_t dimension, std::int64_t start, std::int64_t stop);
/// `x` with `low` and `high` copies of `value` at the ends of a dimension, which may count from the
/// last. Negative numbers remove elements.
Tensor pad_along(const Tensor& x, In value, std::int64_t dimension, std::int64_t low,
                 std::int64_t high);

/// The dtype of sums and products of elements of `dtype`, following the array API standard. Bools
/// and integers narrower than the default integer are widened to its width, keeping their
/// signedness; other dtypes are unchanged.
DType sum_dtype(DType dtype);

/// True if a dimension is in the list.
template <class List>
bool holds(const List& list, std::int64_t dimension) {
  return std::find(list.begin(), list.end(), dimension) != list.end();
}
/// The permutation that undoes `permutation`.
Dimensions inverse_of(const Dimensions& permutation);

/// Checks that an attribute has one entry per dimension of `operand`.
/// @error through call.fail if `count` differs from the operand's rank.
void check_one_each(const OpCall& call, std::string_view what, std::size_t count,
                    const TensorType& operand);

/// Checks an attribute that names a dimension of operand 0.
/// @error through call.fail if it has no such dimension.
void check_dimension(const OpCall& call, std::string_view what, std::int64_t dimension);

/// Checks an attribute that lists dimensions of operand 0, each once.
/// @error through call.fail if it has no such dimension, or if they are not ascending.
void check_ascending(const OpCall& call, const Dimensions& dimensions);

// Sharding rules.

/// A new factor for each dimension of `shape`.
TensorFactors own_factors(ShardingRuleBuilder& builder, const Shape& shape,
                          FactorKind kind = FactorKind::kPassThrough);
/// The rule of an op that needs all dimensions of all operands and results whole.
ShardingRule whole_rule(const OpCall& call);
/// The rule of an op whose operands and results have one shape; dimension d has the kind `kind(d)`.
template <class Kind>
ShardingRule one_shape_rule(const OpCall& call, Kind kind) {
  ShardingRuleBuilder builder;
  TensorFactors factors;
  const Shape& shape = call.operand(0).shape;
  for (int d = 0; d < shape.rank(); ++d) factors.push_back({builder.factor(shape[d], kind(d))});
  for (std::size_t i = 0; i < call.operands.size(); ++i) builder.operand(factors);
  for (std::size_t i = 0; i < call.results.size(); ++i) builder.result(factors);
  return builder.build();
}
/// The same for an op that needs one dimension whole, named by field `at` of the attributes T; all
/// other dimensions pass through.
template <class T, std::int64_t T::*at>
ShardingRule along_rule(const OpCall& call) {
  return one_shape_rule(call, [&](int d) {
    return d == call.as<T>().*at ? FactorKind::kNeedReplication : FactorKind::kPassThrough;
  });
}

/// The entry of a sharding rule for a tensor whose dimension d has the single factor factors[d].
TensorFactors one_factor_each(const InlineVector<int, 6>& factors);

// Numbers that are weakly typed although they are tensors: arguments of jitted functions.

/// A weakly typed tensor for a number that is computed in the widest dtype of its kind (i64, f64).
/// It has the default dtype of its kind (i32, f32); beside a tensor it takes part as a C++ number
/// does: only its kind counts, and it is converted from the wide dtype. What is computed from
/// weakly typed tensors and C++ numbers alone, element by element, is weakly typed too. Everywhere
/// else it is a tensor of its dtype.
/// @pre `wide` has rank 0 and is an i64, an f64 or a bool, which is returned as it is
Tensor weak_number(const Tensor& wide);

/// The same for a number that i32 or f32 cannot hold. It has the wide dtype itself, and converting
/// it to a dtype that cannot hold it is an error when the program is recorded.
/// @pre `wide` has rank 0 and is an i64, a u64 or an f64
Tensor large_number(const Tensor& wide);

/// The weakly typed number for another wide number that `number` has, as weak_number() or
/// large_number() makes it. @pre `number` is weakly typed
Tensor number_like(const Tensor& number, const Tensor& wide);

/// A parameter of rank 0 as a weakly typed number: of the carry of a loop that began with one.
/// @pre `parameter` has the dtype of weak_number() or of large_number(), not bool
Tensor weak_parameter(const Tensor& parameter);

/// True if a tensor of this dtype may take the place of a weakly typed number: promoted with it, it
/// keeps its dtype.
bool can_replace(const Tensor& number, DType dtype);

/// Throws an error if an operand is a large number, or is computed from one, and `dtype` may not
/// hold it. @error invalid argument
void check_holds_large(const In& x, DType dtype);

/// The wide number behind a weakly typed tensor; undefined for any other operand.
Tensor wide_number(const In& x);

/// The kind of an operand that is weakly typed: a C++ number or a weakly typed tensor.
std::optional<ScalarKind> weak_kind(const In& x);

/// Makes the result of an element-wise op weakly typed. @pre no other thread sees its node
void set_wide_number(const Tensor& result, const Tensor& wide);

}  // namespace meshard

// Helpers for batch rules: operands with the batch as dimension 0, and attributes shifted past it.
#pragma once
#include <memory>
#include <vector>

#include "meshard/graph/op_def.h"
#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The shape with `size` prepended to the sizes of `shape`.
Shape batched_shape(std::int64_t size, const Shape& shape);
/// Dimensions of one member, renumbered (+1) for a batch at dimension 0.
Dimensions behind_batch(Dimensions dimensions);
/// `first`, followed by behind_batch(dimensions).
Dimensions with_batch(std::int64_t first, const Dimensions& dimensions);
/// `first`, followed by `entries` unchanged: for lists with one entry per dimension.
Dimensions with_entry(std::int64_t first, const Dimensions& entries);

/// `x`, which all members share, repeated for each of them along a new dimension 0.
Tensor repeated_for_batch(const Tensor& x, std::int64_t size);
/// Operand i with the batch as dimension 0; repeated if all members share it.
Tensor batched_operand(const BatchCall& call, std::size_t i);
/// All operands, each as by batched_operand.
std::vector<Tensor> batched_operands(const BatchCall& call);

/// Operand i for one member.
Tensor member_operand(const BatchCall& call, std::size_t i, std::int64_t member);

/// Records the op of the call again with these attributes and operands, and stores its results in
/// `results`.
void record_batched(const BatchCall& call, std::unique_ptr<const Attributes> attributes,
                    std::span<const Tensor> operands, std::span<Tensor> results);
/// The batch rule of ops that need no changed attributes: element-wise ones. Records the op with
/// the same attributes on batched operands.
void batch_unchanged(const BatchCall& call, std::span<Tensor> results);
/// The fallback rule for ops without a batched form: records the op once per member and stacks the
/// results.
void batch_one_by_one(const BatchCall& call, std::span<Tensor> results);
/// The rule of ops that work along one dimension, which field `at` of their attributes T names.
template <class T, std::int64_t T::*at>
void batch_along(const BatchCall& call, std::span<Tensor> results) {
  T attributes = call.as<T>();
  ++(attributes.*at);
  record_batched(call, make_attributes(std::move(attributes)), batched_operands(call), results);
}
/// The same for a field that holds a list of dimensions.
template <class T, Dimensions T::*at>
void batch_along_all(const BatchCall& call, std::span<Tensor> results) {
  T attributes = call.as<T>();
  attributes.*at = behind_batch(std::move(attributes.*at));
  record_batched(call, make_attributes(std::move(attributes)), batched_operands(call), results);
}

/// The sharding of one member with a new dimension `at` for the batch, sharded as `batch`.
Sharding with_batch_dimension(const Sharding& member, DimensionSpec batch, std::size_t at = 0);
/// The explicit sharding of the batch, dimension 0 of `batched`. `none` if it has no explicit
/// sharding over the mesh of `beside`, or one of its axes is used by `beside`.
DimensionSpec explicit_batch(const Tensor& batched, const Sharding& beside);

}  // namespace meshard

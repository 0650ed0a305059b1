// What batch rules share: operands with the batch in front, and attributes that count past it.
#pragma once
#include <memory>
#include <vector>

#include "meshard/graph/op_def.h"
#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// `size` before the sizes of `shape`.
Shape batched_shape(std::int64_t size, const Shape& shape);
/// The dimensions of one member where the batch is dimension 0: each is one further.
Dimensions behind_batch(Dimensions dimensions);
/// `first`, then behind_batch(dimensions).
Dimensions with_batch(std::int64_t first, const Dimensions& dimensions);
/// `first`, then the same numbers: for lists with an entry for each dimension.
Dimensions with_entry(std::int64_t first, const Dimensions& entries);

/// `x`, which all members share, once for each of them along a new dimension 0.
Tensor repeated_for_batch(const Tensor& x, std::int64_t size);
/// Operand i with the batch as dimension 0, repeated if the members share it.
Tensor batched_operand(const BatchCall& call, std::size_t i);
/// All of them.
std::vector<Tensor> batched_operands(const BatchCall& call);

/// Records the op of the call again, with these attributes and operands; its results are the
/// call's.
void record_batched(const BatchCall& call, std::unique_ptr<const Attributes> attributes,
                    std::span<const Tensor> operands, std::span<Tensor> results);
/// The rule of ops that treat every element by itself, or each of their operands: the same
/// attributes on batched operands.
void batch_unchanged(const BatchCall& call, std::span<Tensor> results);
/// The rule of ops that cannot take a batch: the op on each member, and the results stacked.
void batch_one_by_one(const BatchCall& call, std::span<Tensor> results);
/// The rule of ops with attributes of type T of which `at` names the one dimension that they work
/// along.
template <class T, std::int64_t T::*at>
void batch_along(const BatchCall& call, std::span<Tensor> results) {
  T attributes = call.as<T>();
  ++(attributes.*at);
  record_batched(call, make_attributes(std::move(attributes)), batched_operands(call), results);
}
/// The same for a list of dimensions.
template <class T, Dimensions T::*at>
void batch_along_all(const BatchCall& call, std::span<Tensor> results) {
  T attributes = call.as<T>();
  attributes.*at = behind_batch(std::move(attributes.*at));
  record_batched(call, make_attributes(std::move(attributes)), batched_operands(call), results);
}

/// A sharding that describes one member, with `batch` said of dimension `at`, which is new.
Sharding with_batch_dimension(const Sharding& member, DimensionSpec batch, std::size_t at = 0);
/// How the batch of `batched`, its dimension 0, lies, as far as that is part of it (explicit axes)
/// and `beside` uses none of the axes. Not split otherwise.
DimensionSpec explicit_batch(const Tensor& batched, const Sharding& beside);

}  // namespace meshard

// Slices of a tensor, at fixed and at computed positions.
#pragma once
#include <cstdint>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The elements start[d], start[d] + stride[d], ... below stop[d] of each dimension d. Strides
/// default to 1. For Python-style ranges use index().
/// @error unless 0 <= start <= stop <= size and stride >= 1 in every dimension.
Tensor slice(In x, Dimensions start, Dimensions stop, Dimensions stride = {});

/// A slice of the given `sizes` that begins at `starts`, which are computed. Starts are integers of
/// rank 0, one per dimension, or numbers. A start that is computed is clamped so that the slice
/// fits inside; negative ones do not count from the end.
///
///     dynamic_slice(x, {step, 0}, {1, x.dim(1)})   // row number `step`
/// @error the number of starts or sizes differs from the rank of x; a start that is not an integer
/// of rank 0; a size larger than its dimension; out of range: a number as start with which the
/// slice is not inside.
Tensor dynamic_slice(In x, const std::vector<In>& starts, Dimensions sizes);

/// `x` with the box that begins at `starts` replaced by `update`. Starts are integers of rank 0,
/// one per dimension, or numbers. A start is clamped so that the box fits inside. The dtype is the
/// dtype of x.
/// @error ranks differ; a start that is not an integer of rank 0; an update larger than x.
Tensor dynamic_update_slice(In x, In update, const std::vector<In>& starts);

/// Slice number `layer` of stacked layers, along dimension 0: the parameter of one layer. The value
/// equals the value of `stacked[layer]`; what is recorded for consecutive layers can become one
/// loop (roll_layers()). Use nn::Layers, which records it for all tensors of a layer.
/// @error a tensor of rank 0; a layer outside of 0..size - 1.
Tensor layer_slice(In stacked, std::int64_t layer);

}  // namespace meshard

#pragma once
#include <cstdint>
#include <optional>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The index of the largest (smallest) element along a dimension, the first of equal ones, in i32
/// (i64 where that is too small). NaN counts as the largest and as the smallest, as in NumPy: the
/// first NaN is the answer. Without a dimension: the row-major index in the whole tensor.
/// @error there is no element.
Tensor argmax(In x, std::optional<std::int64_t> dimension = std::nullopt, bool keepdims = false);
Tensor argmin(In x, std::optional<std::int64_t> dimension = std::nullopt, bool keepdims = false);

}  // namespace meshard

#pragma once
#include <cstdint>
#include <optional>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The index of the largest (smallest) element along a dimension. Of equal elements the first. The
/// dtype is i32, or i64 if that is too small. As in NumPy, NaN counts as both the largest and the
/// smallest: the index of the first NaN is returned. Without a dimension: the row-major index in
/// the whole tensor.
/// @error there are no elements.
Tensor argmax(In x, std::optional<std::int64_t> dimension = std::nullopt, bool keepdims = false);
Tensor argmin(In x, std::optional<std::int64_t> dimension = std::nullopt, bool keepdims = false);

}  // namespace meshard

// Indices whose values are known when a call is recorded.
#pragma once
#include <optional>
#include <string_view>
#include <utility>

#include "meshard/graph/tensor.h"

namespace meshard::internal {

/// The smallest and the largest element of integers whose values are known now: a constant, a value
/// in host memory, or one of these reshaped or repeated. Empty for others, and for no elements.
std::optional<std::pair<std::int64_t, std::int64_t>> known_range(const Tensor& integers);

/// Indices that count from the beginning of a dimension: those that count from its end get its size
/// added.
/// @error out of range: a known index is outside of -size..size-1
Tensor indices_from_start(const Tensor& indices, std::int64_t size, std::string_view op,
                          SourceLocation where);

}  // namespace meshard::internal

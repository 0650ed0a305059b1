// The elements of constants in bytecode.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "meshard/array/shape.h"

namespace meshard::stablehlo {

/// The elements of a tensor.
struct Elements {
  TensorType type;
  /// In order, one byte for a bool; a splat has only one element.
  std::string bytes;
  bool is_splat = false;
};

/// Reads the bytes of a constant. None if the element type is not a DType; `index` is i64.
/// @param type `tensor<2x3xi32>`
/// @error throws data loss: another number of bytes
std::optional<Elements> elements_of(std::string_view type, std::string_view blob);

/// Element i. @error throws data loss: it is not an integer or bool
std::int64_t integer_at(const Elements& elements, std::size_t i);

/// `dense<...> : type`, also for element types that are not DTypes.
/// @error as elements_of()
std::string dense_elements(std::string_view type, std::string_view blob);

}  // namespace meshard::stablehlo

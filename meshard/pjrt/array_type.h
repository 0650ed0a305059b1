// The type of one device buffer: element type and dimensions.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "meshard/base/fingerprint.h"
#include "meshard/base/inline_vector.h"
#include "meshard/base/result.h"
#include "meshard/pjrt/element_type.h"

namespace meshard::pjrt {

/// The dimensions of an array, major to minor.
using Dimensions = InlineVector<std::int64_t, 6>;

/// A value: element type and dimensions of one shard, as a plugin sees it.
struct ArrayType {
  ElementType element = ElementType::kInvalid;
  Dimensions dimensions;

  /// Makes the type after checking it.
  /// @error invalid argument if `element` is not an array type, a dimension is negative, or the
  /// number of bytes exceeds 63 bits (such a type aborts the plugin).
  static Result<ArrayType> make(ElementType element, std::span<const std::int64_t> dimensions);

  /// @pre the type came from make(), or is known to be valid.
  std::int64_t element_count() const;
  /// Number of bytes of a dense array of this type in host memory.
  std::size_t host_size() const;
  /// `f32[2,3]`; a scalar is `f32[]`.
  std::string to_string() const;
  /// Parses the output of to_string().
  static Result<ArrayType> parse(std::string_view text);

  std::size_t hash() const;
  friend bool operator==(const ArrayType&, const ArrayType&) = default;
};

}  // namespace meshard::pjrt

template <>
struct std::hash<meshard::pjrt::ArrayType> {
  std::size_t operator()(const meshard::pjrt::ArrayType& type) const noexcept {
    return type.hash();
  }
};

// The type of one device buffer: element type and dimensions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "meshard/base/inline_vector.h"
#include "meshard/base/result.h"

namespace meshard::pjrt {

/// The type of one element. The values equal PJRT_Buffer_Type's, so no translation is needed.
enum class ElementType : std::int32_t {
  kInvalid = 0,
  kPred,
  kS8,
  kS16,
  kS32,
  kS64,
  kU8,
  kU16,
  kU32,
  kU64,
  kF16,
  kF32,
  kF64,
  kBf16,
  kC64,
  kC128,
  kF8E5M2,
  kF8E4M3Fn,
  kF8E4M3B11Fnuz,
  kF8E5M2Fnuz,
  kF8E4M3Fnuz,
  kS4,
  kU4,
  kToken,
  kS2,
  kU2,
  kF8E4M3,
  kF8E3M4,
  kF8E8M0Fnu,
  kF4E2M1Fn,
};

/// True for the types that a buffer may have: all except kInvalid and kToken.
bool is_array_type(ElementType type);

/// Bits of one element by the type's definition: 4 for s4, 64 for c64, 8 for pred. 0 if not an
/// array type.
int bit_width(ElementType type);

/// Bytes of one element in host memory. Types of less than one byte take a whole byte there; the
/// plugin packs them during the transfer.
std::size_t host_bytes(ElementType type);

/// The lower-case name that XLA prints: `f32`, `pred`, `f8e4m3fn`; `invalid` if there is none.
std::string_view to_string(ElementType type);

/// Parses the output of to_string, and also MLIR's spelling (`i1`, `i32`, `ui8`, `f8E4M3FN`,
/// `complex<f32>`).
/// @error invalid argument for any other text.
Result<ElementType> parse_element_type(std::string_view text);

}  // namespace meshard::pjrt

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

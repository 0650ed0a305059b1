// Element types of device buffers, numbered as the PJRT C API numbers them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard::pjrt {

/// The type of one element. The numbers are PJRT_Buffer_Type's, so that nothing is translated.
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

/// True for the types that a buffer may have: every named one but kInvalid and kToken.
bool is_array_type(ElementType type);

/// Bits of one element as the type is defined: 4 for s4, 64 for c64, 8 for pred. 0 for no array
/// type.
int bit_width(ElementType type);

/// Bytes of one element in host memory. Types of less than a byte take a whole one there: the
/// plugin packs them on the way to the device.
std::size_t host_bytes(ElementType type);

/// The lower-case name that XLA prints: `f32`, `pred`, `f8e4m3fn`; `invalid` if there is none.
std::string_view to_string(ElementType type);

/// Reads what to_string printed, and MLIR's spelling too (`i1`, `i32`, `ui8`, `f8E4M3FN`,
/// `complex<f32>`).
/// @error invalid argument for any other text.
Result<ElementType> parse_element_type(std::string_view text);

}  // namespace meshard::pjrt

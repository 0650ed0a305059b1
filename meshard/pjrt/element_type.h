// Element types of device buffers, with the numbers of the PJRT C API.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard::pjrt {

/// The type of one element. The values are those of PJRT_Buffer_Type, so no translation is needed.
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

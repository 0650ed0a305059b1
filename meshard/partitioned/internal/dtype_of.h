// The DType of a plugin's element type.
#pragma once
#include <optional>

#include "meshard/array/dtype.h"
#include "meshard/pjrt/element_type.h"

namespace meshard::internal {

/// Empty for types that have no DType: those of less than one byte.
constexpr std::optional<DType> dtype_of(pjrt::ElementType element) {
  using pjrt::ElementType;
  switch (element) {
    case ElementType::kPred: return DType::bool_;
    case ElementType::kS8: return DType::i8;
    case ElementType::kS16: return DType::i16;
    case ElementType::kS32: return DType::i32;
    case ElementType::kS64: return DType::i64;
    case ElementType::kU8: return DType::u8;
    case ElementType::kU16: return DType::u16;
    case ElementType::kU32: return DType::u32;
    case ElementType::kU64: return DType::u64;
    case ElementType::kF16: return DType::f16;
    case ElementType::kBf16: return DType::bf16;
    case ElementType::kF32: return DType::f32;
    case ElementType::kF64: return DType::f64;
    case ElementType::kC64: return DType::c64;
    case ElementType::kC128: return DType::c128;
    case ElementType::kF8E4M3Fn: return DType::f8e4m3fn;
    case ElementType::kF8E5M2: return DType::f8e5m2;
    case ElementType::kF8E4M3: return DType::f8e4m3;
    case ElementType::kF8E3M4: return DType::f8e3m4;
    case ElementType::kF8E4M3Fnuz: return DType::f8e4m3fnuz;
    case ElementType::kF8E5M2Fnuz: return DType::f8e5m2fnuz;
    case ElementType::kF8E4M3B11Fnuz: return DType::f8e4m3b11fnuz;
    case ElementType::kF8E8M0Fnu: return DType::f8e8m0fnu;
    default: return std::nullopt;
  }
}

}  // namespace meshard::internal

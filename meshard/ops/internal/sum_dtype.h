#pragma once
#include "meshard/array/dtype.h"

namespace meshard::internal {

/// The dtype of sums and products of elements of `dtype`, following the array API standard. Bools
/// and integers narrower than the default integer are widened to its width, keeping their
/// signedness; other dtypes are unchanged.
constexpr DType sum_dtype(DType dtype) {
  switch (dtype) {
    case DType::bool_:
    case DType::i8:
    case DType::i16: return kDefaultInteger;
    case DType::u8:
    case DType::u16: return DType::u32;
    default: return dtype;
  }
}

}  // namespace meshard::internal

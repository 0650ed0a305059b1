#pragma once
#include "meshard/array/dtype.h"

namespace meshard {

/// The dtype of sums and products of elements of a dtype, as the array API standard has it: bools
/// and integers that are narrower than the default one in its width, signed or not as they are;
/// others as they are.
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

}  // namespace meshard

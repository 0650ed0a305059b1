#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

struct ReducePrecisionAttributes {
  std::int64_t exponent_bits = 8, mantissa_bits = 23;
  MESHARD_FIELDS(exponent_bits, mantissa_bits)
};

/// The elements rounded to what a float of fewer bits could hold, in their own dtype: 5 and 10 are
/// f16, 8 and 7 bf16. Halfway cases go to the even one; what is too large becomes infinite. The
/// cotangent is rounded alike. Integers are computed in f32.
/// @error fewer than one bit of exponent or fewer than none of mantissa.
Tensor reduce_precision(In x, std::int64_t exponent_bits, std::int64_t mantissa_bits);

}  // namespace meshard

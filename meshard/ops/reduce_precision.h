#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

struct ReducePrecisionAttributes {
  std::int64_t exponent_bits = 8, mantissa_bits = 23;
  MESHARD_FIELDS(exponent_bits, mantissa_bits)
};

/// Rounds the elements to a float format with fewer bits; the dtype is unchanged. 5 exponent and 10
/// mantissa bits are f16, 8 and 7 are bf16. Ties round to even; a number that is too large becomes
/// infinite. The cotangent is rounded in the same way. Integers are computed in f32.
/// @error exponent_bits < 1 or mantissa_bits < 0.
Tensor reduce_precision(In x, std::int64_t exponent_bits, std::int64_t mantissa_bits);

}  // namespace meshard

// What random.h and the distributions share: uniform numbers between bounds that are computed.
#pragma once
#include <string_view>

#include "meshard/graph/tensor.h"

namespace meshard::random {

/// Bits of the stored mantissa of f16, bf16, f32 and f64; 0 of other dtypes.
int mantissa_bits(DType dtype);

/// @error invalid argument, naming random.`place`, unless `key` is u32[2].
void check_key(std::string_view place, const In& key);

/// @error invalid argument, naming random.`place`, unless dtype is f16, bf16, f32 or f64.
void check_float(std::string_view place, DType dtype, SourceLocation where);

/// `value` rounded to `dtype`, of rank 0, as part of the program.
Tensor float_constant(DType dtype, double value);

/// Uniform in [low, high). The bounds have `dtype`, and rank 0 or a shape that broadcasts to
/// `shape`; low + u * (high - low) is rounded as JAX rounds it.
/// @pre check_float(dtype)
Tensor uniform_between(In key, const Shape& shape, DType dtype, const Tensor& low,
                       const Tensor& high);
/// The same for numbers.
Tensor uniform_between(In key, const Shape& shape, DType dtype, double low, double high);

}  // namespace meshard::random

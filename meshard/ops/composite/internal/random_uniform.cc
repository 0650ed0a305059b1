// Tested in meshard/ops/composite/random_test.cc.
#include "meshard/ops/composite/internal/random_uniform.h"

#include <bit>
#include <cmath>

#include "meshard/ops/all.h"

namespace meshard::random::internal {

int mantissa_bits(DType dtype) {
  switch (dtype) {
    case DType::f16: return 10;
    case DType::bf16: return 7;
    case DType::f32: return 23;
    case DType::f64: return 52;
    default: return 0;
  }
}

void check_float(std::string_view place, DType dtype, SourceLocation where) {
  if (mantissa_bits(dtype) == 0)
    throw_invalid(effective_source(where), "[random.", place, "] takes f16, bf16, f32 or f64, not ",
                  dtype);
}

Tensor float_constant(DType dtype, double value) {
  return constant(HostArray::full(TensorType{dtype, Shape{}}, value));
}

// The highest bits as a whole number below 2^mantissa, scaled. This is exact, and equal to filling
// the mantissa of a number in [1, 2) and subtracting 1.
Tensor unit_of(const Words& words, DType dtype) {
  constexpr DType kBitsOf[] = {DType::u8, DType::u16, DType::u32, DType::u64};
  // bf16 is filled from 8 random bits, as in JAX.
  int mantissa = mantissa_bits(dtype), width = 8 * static_cast<int>(size_in_bytes(dtype));
  if (mantissa < 8) width = 8;
  Tensor random = bits_of(words, kBitsOf[std::bit_width(static_cast<unsigned>(width)) - 4]);
  Tensor whole = astype(bitwise_right_shift(random, width - mantissa), dtype);
  return multiply(whole, float_constant(dtype, std::ldexp(1.0, -mantissa)));
}

Tensor uniform_between(In key, const Shape& shape, DType dtype, const Tensor& low,
                       const Tensor& high) {
  Tensor unit = unit_of(words_at("bits", key, shape), dtype);
  Tensor stretched = multiply(unit, subtract(high, low));
  // Rounding could give a result below the lower bound.
  return maximum(add(stretched, low), low);
}

Tensor between(const Tensor& unit, double low, double high) {
  DType dtype = unit.dtype();
  auto rounded = [&](double value) {
    return HostArray::full(TensorType{dtype, Shape{}}, value).item<double>();
  };
  Tensor lowest = float_constant(dtype, low);
  Tensor range = float_constant(dtype, rounded(high) - rounded(low));
  return maximum(add(multiply(unit, range), lowest), lowest);
}

Tensor uniform_between(In key, const Shape& shape, DType dtype, double low, double high) {
  return between(unit_of(words_at("bits", key, shape), dtype), low, high);
}

}  // namespace meshard::random::internal

#include "meshard/ops/power.h"

#include <algorithm>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/internal/complex_emission.h"

namespace meshard {

extern constinit const OpDef pow_op = element_wise::define({
    .name = "pow",
    .operands = "a, b",
    .example = "pow(x, y)",
    .domain = DTypeDomain::kNumberOrComplex,
    .mnemonic = "stablehlo.power",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor &a = call.operands[0], &b = call.operands[1];
          if (call.needs(0)) {
            // b * a^(b-1), where 0 * 0^-1 counts as 0. (b = 0 is special only at a = 0; treating it
            // so elsewhere would lose the derivative of this expression by b.)
            Tensor pole = logical_and(equal(a, 0), equal(b, 0));
            Tensor lower = pow(a, where(pole, 1, subtract(b, 1)));
            out[0] = multiply(call.cotangents[0], where(pole, 0, multiply(b, lower)));
          }
          if (call.needs(1)) {
            // a^b * log(a), where 0 * log(0) counts as 0.
            Tensor logarithm = log(where(equal(a, 0), 1, a));
            out[1] = multiply(call.cotangents[0], multiply(call.results[0], logarithm));
          }
        },
    .traits = {.recomputation = Recomputation::kFunction},
});

namespace {

// XLA reads 6 bits of an integer exponent.
constexpr int kExponentBits = 6;
constexpr std::int64_t kExponents = std::int64_t{1} << kExponentBits;

Tensor power(const Tensor& a, In b) { return element_wise::binary(pow_op, a, b); }

// a^n by the squares of a, modulo the size of its integer dtype.
Tensor power_by_squares(Tensor a, std::uint64_t n) {
  Tensor result;
  for (; n != 0; n >>= 1) {
    if (n & 1) result = result.defined() ? multiply(result, a) : a;
    if (n > 1) a = multiply(a, a);
  }
  return result;
}

// a^b for integers of one dtype. The exponent's digits to the base 64 are applied one after the
// other; a negative exponent gives the integer part of the inverse, and 0 for the inverse of 0.
Tensor integer_power(const Tensor& a, const Tensor& b) {
  const DType dtype = a.dtype();
  const int bits = 8 * static_cast<int>(size_in_bytes(dtype)) - (is_signed_integer(dtype) ? 1 : 0);
  Tensor base = a, rest = b, result;
  for (int done = 0; done < bits; done += kExponentBits) {
    const std::int64_t digits = (std::int64_t{1} << std::min(kExponentBits, bits - done)) - 1;
    Tensor part = power(base, bitwise_and(rest, digits));
    result = result.defined() ? multiply(result, part) : part;
    if (done + kExponentBits >= bits) break;
    rest = bitwise_right_shift(rest, kExponentBits);
    for (int i = 0; i < kExponentBits; ++i) base = multiply(base, base);
  }
  if (!is_signed_integer(dtype)) return result;
  Tensor sign = where(equal(bitwise_and(b, 1), 0), 1, -1);
  Tensor inverse = where(equal(a, 1), 1, where(equal(a, -1), sign, 0));
  return where(less(b, 0), astype(inverse, dtype), result);
}

}  // namespace

Tensor pow(In a, In b) {
  SourceScope line(a.where);
  const DType dtype = element_wise::common_dtype(pow_op, a, b);
  if (!is_integer(dtype)) return element_wise::binary(pow_op, a, b);
  if (!b.tensor) {
    const Scalar& n = b.scalar;
    if (n.integer < 0 && !n.is_above_i64)
      throw_invalid(effective_source(a.where), "[pow] an integer to the power of ", n,
                    " is not an integer: convert it to a float first");
    if (n.integer < kExponents && !n.is_above_i64) return element_wise::binary(pow_op, a, b);
    return power_by_squares(element_wise::to_tensor(a, dtype),
                            static_cast<std::uint64_t>(n.integer));
  }
  return integer_power(element_wise::to_tensor(a, dtype), element_wise::to_tensor(b, dtype));
}

extern constinit const OpDef sqrt_op = element_wise::define_function({
    .name = "sqrt",
    .example = "sqrt(x)",
    .mnemonic = "stablehlo.sqrt",
    .emit = internal::emit_sqrt,
    .vjp = element_wise::by_slope([](const VjpCall& call) {
      Tensor half = element_wise::literal(0.5, call.results[0]);
      return divide(half, call.results[0]);
    }),
});

Tensor sqrt(In x) { return element_wise::unary(sqrt_op, x); }

extern constinit const OpDef rsqrt_op = element_wise::define_function({
    .name = "rsqrt",
    .example = "rsqrt(x)",
    .mnemonic = "stablehlo.rsqrt",
    .vjp = element_wise::by_slope([](const VjpCall& call) {
      // y = x^(-1/2), so dy/dx = -y / 2x.
      Tensor half = element_wise::literal(-0.5, call.results[0]);
      return multiply(half, divide(call.results[0], call.operands[0]));
    }),
});

Tensor rsqrt(In x) { return element_wise::unary(rsqrt_op, x); }

extern constinit const OpDef cbrt_op = element_wise::define_function({
    .name = "cbrt",
    .example = "cbrt(x)",
    .domain = DTypeDomain::kFloat,
    .mnemonic = "stablehlo.cbrt",
    .vjp = element_wise::by_slope([](const VjpCall& call) {
      // y = x^(1/3), so dy/dx = 1 / 3y^2.
      Tensor third = element_wise::literal(1.0 / 3.0, call.results[0]);
      Tensor squared = multiply(call.results[0], call.results[0]);
      return divide(third, squared);
    }),
});

Tensor cbrt(In x) { return element_wise::unary(cbrt_op, x); }

}  // namespace meshard

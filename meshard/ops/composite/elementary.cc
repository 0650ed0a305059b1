#include "meshard/ops/composite/elementary.h"

#include <numbers>

#include "meshard/ops/all.h"
#include "meshard/ops/composite/internal/float_computation.h"
#include "meshard/ops/definition/define.h"

namespace meshard {
using namespace internal;

Tensor square(In x) { return multiply(x, x); }

namespace {

Tensor scaled_log(std::string_view name, const In& x, double factor) {
  SourceScope line(x.where);
  Tensor natural = log(operand_tensor(name, x));
  auto scaled = [&](const Tensor& part) {
    return multiply(part, element_wise::literal(factor, part));
  };
  // Scales the parts separately: the complex product of (-inf, 0) and (factor, 0) contains NaN.
  return is_complex(natural.dtype()) ? complex(scaled(real(natural)), scaled(imag(natural)))
                                     : scaled(natural);
}

}  // namespace

Tensor exp2(In x) {
  SourceScope line(x.where);
  Tensor operand = floating_operand("exp2", x);
  return exp(multiply(operand, element_wise::literal(std::numbers::ln2, operand)));
}

Tensor log2(In x) { return scaled_log("log2", x, std::numbers::log2e); }
Tensor log10(In x) { return scaled_log("log10", x, std::numbers::log10e); }

namespace {

// The op's name for the messages of common_dtype.
constexpr OpDef kLogaddexp{.name = "logaddexp"};

}  // namespace

Tensor logaddexp(In a, In b) {
  SourceScope line(a.where);
  check_real("logaddexp", a);
  check_real("logaddexp", b);
  DType common = element_wise::common_dtype(kLogaddexp, a, b);
  // Integers are converted first, because their differences could wrap around.
  bool integral = is_integer(common) || common == DType::bool_;
  auto operand = [&](const In& number) {
    DType dtype = integral ? kDefaultFloat : common;
    return number.tensor ? astype(number, dtype) : element_wise::to_tensor(number, dtype);
  };
  Tensor x = operand(a), y = operand(b), difference = subtract(x, y);
  // The difference of equal infinities is NaN. Their sum is the correct result, and a distance of 0
  // keeps NaN out of the derivative. (NaN operands take the other path, so that their derivative is
  // NaN.)
  Tensor undefined = logical_and(equal(x, y), isinf(x));
  // Uses a selection instead of maximum and abs: for equal operands, any choice gives the correct
  // derivatives of the whole, but maximum and abs would not.
  Tensor x_is_larger = greater_equal(x, y);
  Tensor larger = where(x_is_larger, x, y);
  Tensor distance = where(undefined, 0, where(x_is_larger, difference, negative(difference)));
  Tensor far = add(larger, log1p(exp(negative(distance))));
  return where(undefined, add(x, y), far);
}

namespace {

// The signed integer dtype of the same width.
DType integer_of(DType dtype) {
  switch (size_in_bytes(dtype)) {
    case 1: return DType::i8;
    case 2: return DType::i16;
    case 4: return DType::i32;
    default: return DType::i64;
  }
}

}  // namespace

Tensor signbit(In x) {
  SourceScope line(x.where);
  Tensor operand = real_floating_operand("signbit", x);
  return less(bitcast_convert(operand, integer_of(operand.dtype())), 0);
}

Tensor copysign(In a, In b) {
  SourceScope line(a.where);
  // A C++ number is weakly typed: the tensor determines the dtype.
  Tensor size = a.tensor ? real_floating_operand("copysign", a)
                         : astype(a, real_floating_operand("copysign", b).dtype());
  Tensor sign = b.tensor ? real_floating_operand("copysign", b) : astype(b, size.dtype());
  size = astype(size, promote(size.dtype(), sign.dtype(), effective_source(a.where)));
  Tensor without = abs(size);
  return where(signbit(sign), negative(without), without);
}

Tensor hypot(In a, In b) {
  SourceScope line(a.where);
  Tensor x = a.tensor ? real_floating_operand("hypot", a)
                      : astype(a, real_floating_operand("hypot", b).dtype());
  Tensor y = b.tensor ? real_floating_operand("hypot", b) : astype(b, x.dtype());
  // A selection that keeps the signs, so that derivatives are correct where both are equally large,
  // and where one is zero.
  Tensor x_is_larger = logical_or(greater_equal(abs(x), abs(y)), isinf(x));
  Tensor larger = where(x_is_larger, x, y), smaller = where(x_is_larger, y, x);
  Tensor infinite = logical_or(isinf(x), isinf(y));
  Tensor is_zero = logical_and(equal(x, 0), equal(y, 0));
  Tensor has_ratio = logical_not(logical_or(infinite, is_zero));
  Tensor ratio = divide(where(has_ratio, smaller, 0), where(has_ratio, larger, 1));
  Tensor result = multiply(abs(larger), sqrt(add(1, multiply(ratio, ratio))));
  // The derivative by an infinite operand is that of its magnitude, the limit for large numbers.
  return where(infinite, abs(larger), where(is_zero, 0, result));
}

Tensor reciprocal(In x) {
  SourceScope line(x.where);
  return divide(1, floating_operand("reciprocal", x));
}

Tensor isnan(In x) { return not_equal(x, x); }

// Neither finite nor NaN. Some 8-bit floats have no infinity with which to compare.
Tensor isinf(In x) {
  SourceScope line(x.where);
  return logical_not(logical_or(isfinite(x), isnan(x)));
}

}  // namespace meshard

#include "meshard/ops/composite/magnitude.h"

#include "meshard/graph/record.h"
#include "meshard/ops/abs.h"
#include "meshard/ops/add.h"
#include "meshard/ops/astype.h"
#include "meshard/ops/bitcast_convert.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/internal/float_computation.h"
#include "meshard/ops/composite/special_values.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/logical.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"
#include "meshard/ops/sqrt.h"
#include "meshard/ops/where.h"

namespace meshard {
using namespace internal;
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

}  // namespace meshard

#include "meshard/ops/composite/magnitude.h"

#include <limits>

#include "meshard/graph/record.h"
#include "meshard/ops/abs.h"
#include "meshard/ops/add.h"
#include "meshard/ops/astype.h"
#include "meshard/ops/bitcast_convert.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/float_computation.h"
#include "meshard/ops/composite/special_values.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/element_wise.h"
#include "meshard/ops/fmod.h"
#include "meshard/ops/logical.h"
#include "meshard/ops/maximum.h"
#include "meshard/ops/minimum.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"
#include "meshard/ops/operand.h"
#include "meshard/ops/rounding.h"
#include "meshard/ops/sign.h"
#include "meshard/ops/sqrt.h"
#include "meshard/ops/subtract.h"
#include "meshard/ops/truncated_divide.h"
#include "meshard/ops/where.h"

namespace meshard {
namespace {

Tensor floating_operand(std::string_view name, const In& x) {
  Tensor operand = operand_tensor(name, x);
  return astype(operand, float_result_dtype(operand.dtype()));
}

// For what is said of its operands.
constexpr OpDef kFloorDivide{.name = "floor_divide"};

// The signed integer that is as wide.
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
  Tensor operand = floating_operand("signbit", x);
  return less(bitcast_convert(operand, integer_of(operand.dtype())), 0);
}

Tensor copysign(In a, In b) {
  SourceScope line(a.where);
  // A number beside a tensor is weak: it has the sign, and the tensor the dtype.
  Tensor size = a.tensor ? floating_operand("copysign", a)
                         : astype(a, floating_operand("copysign", b).dtype());
  Tensor sign = b.tensor ? floating_operand("copysign", b) : astype(b, size.dtype());
  size = astype(size, promote(size.dtype(), sign.dtype(), effective_source(a.where)));
  Tensor other = logical_xor(signbit(size), signbit(sign));
  return where(other, negative(size), size);
}

Tensor hypot(In a, In b) {
  SourceScope line(a.where);
  Tensor x = abs(a.tensor ? floating_operand("hypot", a)
                          : astype(a, floating_operand("hypot", b).dtype()));
  Tensor y = abs(b.tensor ? floating_operand("hypot", b) : astype(b, x.dtype()));
  Tensor larger = maximum(x, y), smaller = minimum(x, y);
  Tensor is_zero = equal(larger, 0);
  Tensor ratio = divide(smaller, where(is_zero, 1, larger));
  Tensor result = multiply(larger, sqrt(add(1, multiply(ratio, ratio))));
  Tensor infinite = logical_or(isinf(x), isinf(y));
  return where(infinite, std::numeric_limits<double>::infinity(), where(is_zero, larger, result));
}

Tensor reciprocal(In x) {
  SourceScope line(x.where);
  return divide(1, floating_operand("reciprocal", x));
}

Tensor floor_divide(In a, In b) {
  SourceScope line(a.where);
  DType dtype = element_wise::common_dtype(kFloorDivide, a, b);
  if (is_complex(dtype))
    throw_invalid(effective_source(a.where), "[floor_divide] takes no complex numbers, ", dtype);
  if (dtype == DType::bool_) dtype = kDefaultInteger;
  auto number = [&](const In& x) {
    return x.tensor ? astype(x, dtype) : element_wise::to_tensor(x, dtype);
  };
  Tensor x = number(a), y = number(b);
  if (is_unsigned_integer(dtype)) return truncated_divide(x, y);
  Tensor rest = fmod(x, y);
  Tensor above = logical_and(not_equal(rest, 0), not_equal(sign(y), sign(rest)));
  if (is_integer(dtype)) {
    Tensor quotient = truncated_divide(x, y);
    return where(above, subtract(quotient, 1), quotient);
  }
  // Nothing is left of a division by zero that could be subtracted.
  Tensor quotient = divide(where(equal(y, 0), x, subtract(x, rest)), y);
  return round_nearest_afz(where(above, subtract(quotient, 1), quotient));
}

}  // namespace meshard

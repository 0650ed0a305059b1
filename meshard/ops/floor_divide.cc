#include "meshard/ops/floor_divide.h"

#include "meshard/graph/record.h"
#include "meshard/ops/astype.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/internal/division_samples.h"
#include "meshard/ops/internal/element_writer.h"

namespace meshard {
using namespace internal;
namespace {

using Typed = OpEmission::Typed;

// True where the remainder is not zero and its sign differs from the divisor's. The sign of zero is
// zero: of an integer divided by 0 all remains, so that the result on CPUs equals JAX's.
Typed is_rounded_up(ElementWriter& w, Typed rest, Typed divisor, Typed zero) {
  Typed has_rest = w.compare("NE", rest, zero);
  Typed divisor_sign = w.unary("stablehlo.sign", divisor);
  Typed rest_sign = w.unary("stablehlo.sign", rest);
  Typed signs_differ = w.compare("NE", divisor_sign, rest_sign);
  return w.binary("stablehlo.and", has_rest, signs_differ);
}

void emit_integers(ElementWriter& w, Typed a, Typed b) {
  Typed zero = w.number(0);
  Typed truncated = w.binary("stablehlo.divide", a, b);
  Typed product = w.binary("stablehlo.multiply", truncated, b);
  Typed rest = w.binary("stablehlo.subtract", a, product);
  Typed above = is_rounded_up(w, rest, b, zero);
  Typed one = w.number(1);
  Typed less = w.binary("stablehlo.subtract", truncated, one);
  w.finish_with_select(above, less, truncated);
}

void emit_floats(ElementWriter& w, Typed a, Typed b) {
  Typed zero = w.number(0);
  Typed rest = w.binary("stablehlo.remainder", a, b);
  Typed above = is_rounded_up(w, rest, b, zero);
  // For a division by zero the remainder, NaN, must not be subtracted.
  Typed by_zero = w.compare("EQ", b, zero);
  Typed difference = w.binary("stablehlo.subtract", a, rest);
  Typed multiple = w.select(by_zero, a, difference);
  Typed quotient = w.binary("stablehlo.divide", multiple, b);
  Typed one = w.number(1);
  Typed less = w.binary("stablehlo.subtract", quotient, one);
  Typed exact = w.select(above, less, quotient);
  Typed rounded = w.unary("stablehlo.round_nearest_afz", exact);
  Typed a_is_finite = w.is_finite(a);
  Typed b_is_finite = w.is_finite(b);
  Typed finite = w.binary("stablehlo.and", a_is_finite, b_is_finite);
  Typed is_nonzero = w.compare("NE", a, zero);
  Typed ordinary = w.binary("stablehlo.and", finite, is_nonzero);
  Typed plain = w.binary("stablehlo.divide", a, b);
  Typed limit = w.unary("stablehlo.floor", plain);
  w.finish_with_select(ordinary, rounded, limit);
}

void emit_floor_divide(const OpCall& call, OpEmission& out) {
  const TensorType& type = call.result();
  ElementWriter w(type, out);
  Typed a = out.operands[0], b = out.operands[1];
  if (is_unsigned_integer(type.dtype)) return w.finish_with("stablehlo.divide", a, b);
  is_integer(type.dtype) ? emit_integers(w, a, b) : emit_floats(w, a, b);
}

std::vector<OpSample> floor_divide_samples(SampleSource& source) {
  return division_samples(source, floor_divide, /*with_unsigned=*/true);
}

}  // namespace

extern constinit const OpDef floor_divide_op = element_wise::define({
    .name = "floor_divide",
    .operands = "a, b",
    .example = "floor_divide(x, y)",
    .domain = DTypeDomain::kNumber,
    .emit = emit_floor_divide,
    .vjp = element_wise::zero_vjp,
    .samples = floor_divide_samples,
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor floor_divide(In a, In b) {
  if (element_wise::common_dtype(floor_divide_op, a, b) != DType::bool_)
    return element_wise::binary(floor_divide_op, a, b);
  SourceScope line(a.where);
  auto number = [](const In& x) {
    return x.tensor ? astype(x, kDefaultInteger) : element_wise::to_tensor(x, kDefaultInteger);
  };
  Tensor dividend = number(a), divisor = number(b);
  return element_wise::binary(floor_divide_op, dividend, divisor);
}

}  // namespace meshard

#include "meshard/ops/division.h"

#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/internal/element_writer.h"

namespace meshard {
using namespace internal;
namespace {

using Typed = OpEmission::Typed;

// The divisor of a remainder, with 0 replaced by 1 for integers. A remainder by 1 is 0, which NumPy
// and JAX return for a divisor of 0; StableHLO leaves the result to the backend. A float divisor is
// unchanged.
Typed nonzero(ElementWriter& w, Typed divisor) {
  if (!is_integer(divisor.type->dtype)) return divisor;
  Typed zero = w.number(0), one = w.number(1);
  Typed is_zero = w.compare("EQ", divisor, zero);
  return w.select(is_zero, one, divisor);
}

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

}  // namespace

extern constinit const OpDef floor_divide_op = element_wise::define({
    .name = "floor_divide",
    .operands = "a, b",
    .example = "floor_divide(x, y)",
    .domain = DTypeDomain::kNumber,
    .emit = emit_floor_divide,
    .vjp = element_wise::zero_vjp,
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

extern constinit const OpDef truncated_divide_op = element_wise::define({
    .name = "truncated_divide",
    .operands = "a, b",
    .example = "truncated_divide(astype(x, DType::i32), 3)",
    .domain = DTypeDomain::kInteger,
    .mnemonic = "stablehlo.divide",
    .vjp = kNotDifferentiable,
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor truncated_divide(In a, In b) { return element_wise::binary(truncated_divide_op, a, b); }

namespace {}  // namespace

extern constinit const OpDef fmod_op = element_wise::define({
    .name = "fmod",
    .operands = "a, b",
    .example = "fmod(x, y)",
    .domain = DTypeDomain::kNumber,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          ElementWriter w(call.result(), out);
          w.finish_with("stablehlo.remainder", out.operands[0], nonzero(w, out.operands[1]));
        },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = call.cotangents[0];
          if (call.needs(1)) {
            Tensor quotient = trunc(divide(call.operands[0], call.operands[1]));
            out[1] = negative(multiply(call.cotangents[0], quotient));
          }
        },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor fmod(In a, In b) { return element_wise::binary(fmod_op, a, b); }

namespace {

// StableHLO's remainder has the sign of the dividend. The divisor is added where the remainder is
// nonzero and its sign differs from the divisor's; a zero of floats gets the sign of the divisor.
void emit_remainder(const OpCall& call, OpEmission& out) {
  const TensorType& type = call.result();
  ElementWriter w(type, out);
  Typed dividend = out.operands[0], divisor = out.operands[1], by = nonzero(w, divisor);
  if (is_unsigned_integer(type.dtype)) return w.finish_with("stablehlo.remainder", dividend, by);
  Typed zero = w.number(0);
  Typed rest = w.binary("stablehlo.remainder", dividend, by);
  Typed divisor_sign = w.compare("LT", divisor, zero);
  Typed rest_sign = w.compare("LT", rest, zero);
  Typed signs_differ = w.binary("stablehlo.xor", rest_sign, divisor_sign);
  Typed has_rest = w.compare("NE", rest, zero);
  Typed is_wrong = w.binary("stablehlo.and", has_rest, signs_differ);
  Typed mended = w.binary("stablehlo.add", rest, divisor);
  if (!is_floating(type.dtype)) return w.finish_with_select(is_wrong, mended, rest);
  Typed result = w.select(is_wrong, mended, rest);
  Typed negative_zero = w.number(-0.0);
  Typed signed_zero = w.select(divisor_sign, negative_zero, zero);
  w.finish_with_select(has_rest, result, signed_zero);
}

}  // namespace

extern constinit const OpDef remainder_op = element_wise::define({
    .name = "remainder",
    .operands = "a, b",
    .example = "remainder(x, y)",
    .domain = DTypeDomain::kNumber,
    .mnemonic = "stablehlo.remainder",
    .emit = emit_remainder,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = call.cotangents[0];
          if (call.needs(1)) {
            // floor(a / b) from its truncation, because a quotient between -1 and 0 may round to 0.
            const Tensor &a = call.operands[0], &b = call.operands[1];
            Tensor truncated = trunc(divide(a, b));
            Tensor below =
                logical_and(not_equal(call.results[0], 0), logical_xor(less(a, 0), less(b, 0)));
            Tensor quotient = where(below, subtract(truncated, 1), truncated);
            out[1] = negative(multiply(call.cotangents[0], quotient));
          }
        },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor remainder(In a, In b) { return element_wise::binary(remainder_op, a, b); }

}  // namespace meshard

// Element-wise functions.
#include "tools/conformance/jax/calls/call_table.h"

namespace meshard::conformance {
namespace {

// The exponent is an operand, or a number if the case has one.
Tensor power(Operands x, const Attributes& at) {
  return x.size() > 1 ? pow(x[0], x[1]) : pow(x[0], at.integer("power"));
}

GeluForm gelu_form(const Attributes& at) {
  return at.one_of("form", {"tanh", "erf"}) == 0 ? GeluForm::kTanh : GeluForm::kErf;
}

const CallTable& with_attributes() {
  static const CallTable table{
      {"pow", one_result(power)},
      {"where", one_result([](Operands x, const Attributes&) { return where(x[0], x[1], x[2]); })},
      {"clip", one_result([](Operands x, const Attributes& at) {
         return clip(x[0], at.integer("min"), at.integer("max"));
       })},
      {"clip_tensors",
       one_result([](Operands x, const Attributes&) { return clip(x[0], x[1], x[2]); })},
      {"astype", one_result([](Operands x, const Attributes& at) {
         return astype(x[0], at.dtype("dtype"));
       })},
      {"reduce_precision", one_result([](Operands x, const Attributes& at) {
         return reduce_precision(x[0], at.integer("exponent_bits"), at.integer("mantissa_bits"));
       })},
      {"leaky_relu", one_result([](Operands x, const Attributes& at) {
         return leaky_relu(x[0], at.number("negative_slope"));
       })},
      {"elu",
       one_result([](Operands x, const Attributes& at) { return elu(x[0], at.number("alpha")); })},
      {"celu",
       one_result([](Operands x, const Attributes& at) { return celu(x[0], at.number("alpha")); })},
      {"gelu",
       one_result([](Operands x, const Attributes& at) { return gelu(x[0], gelu_form(at)); })},
      {"geglu", one_result([](Operands x, const Attributes& at) {
         return geglu(x[0], x[1], gelu_form(at));
       })},
      {"polygamma", one_result([](Operands x, const Attributes& at) {
         return polygamma(at.integer("order"), x[0]);
       })},
      {"stop_gradient",
       one_result([](Operands x, const Attributes&) { return x[0] * stop_gradient(x[0]); })},
  };
  return table;
}

}  // namespace

const CallTable& element_wise_calls() {
#define MESHARD_ONE(op) \
  { #op, of_one(op) }
#define MESHARD_TWO(op) \
  { #op, of_two(op) }
  static const CallTable table = [] {
    CallTable all = with_attributes();
    all.merge(CallTable{
        MESHARD_ONE(abs),          MESHARD_ONE(acos),
        MESHARD_ONE(acosh),        MESHARD_ONE(asin),
        MESHARD_ONE(asinh),        MESHARD_ONE(atan),
        MESHARD_ONE(atanh),        MESHARD_ONE(bitwise_invert),
        MESHARD_ONE(cbrt),         MESHARD_ONE(ceil),
        MESHARD_ONE(conj),         MESHARD_ONE(cos),
        MESHARD_ONE(cosh),         MESHARD_ONE(count_leading_zeros),
        MESHARD_ONE(digamma),      MESHARD_ONE(erf),
        MESHARD_ONE(erf_inv),      MESHARD_ONE(erfc),
        MESHARD_ONE(exp),          MESHARD_ONE(exp2),
        MESHARD_ONE(expm1),        MESHARD_ONE(floor),
        MESHARD_ONE(hard_sigmoid), MESHARD_ONE(hard_silu),
        MESHARD_ONE(hard_tanh),    MESHARD_ONE(imag),
        MESHARD_ONE(isfinite),     MESHARD_ONE(isinf),
        MESHARD_ONE(isnan),        MESHARD_ONE(lgamma),
        MESHARD_ONE(log),          MESHARD_ONE(log10),
        MESHARD_ONE(log1p),        MESHARD_ONE(log2),
        MESHARD_ONE(log_sigmoid),  MESHARD_ONE(logical_not),
        MESHARD_ONE(logistic),     MESHARD_ONE(mish),
        MESHARD_ONE(negative),     MESHARD_ONE(popcnt),
        MESHARD_ONE(real),         MESHARD_ONE(reciprocal),
        MESHARD_ONE(relu),         MESHARD_ONE(relu6),
        MESHARD_ONE(round),        MESHARD_ONE(round_nearest_afz),
        MESHARD_ONE(rsqrt),        MESHARD_ONE(selu),
        MESHARD_ONE(sign),         MESHARD_ONE(signbit),
        MESHARD_ONE(silu),         MESHARD_ONE(sin),
        MESHARD_ONE(sinh),         MESHARD_ONE(soft_sign),
        MESHARD_ONE(softplus),     MESHARD_ONE(sqrt),
        MESHARD_ONE(square),       MESHARD_ONE(tan),
        MESHARD_ONE(tanh),         MESHARD_ONE(trunc),
    });
    all.merge(CallTable{
        MESHARD_TWO(add),
        MESHARD_TWO(atan2),
        MESHARD_TWO(bitwise_and),
        MESHARD_TWO(bitwise_left_shift),
        MESHARD_TWO(bitwise_or),
        MESHARD_TWO(bitwise_right_shift),
        MESHARD_TWO(bitwise_xor),
        MESHARD_TWO(complex),
        MESHARD_TWO(copysign),
        MESHARD_TWO(divide),
        MESHARD_TWO(equal),
        MESHARD_TWO(floor_divide),
        MESHARD_TWO(fmod),
        MESHARD_TWO(greater),
        MESHARD_TWO(greater_equal),
        MESHARD_TWO(hypot),
        MESHARD_TWO(less),
        MESHARD_TWO(less_equal),
        MESHARD_TWO(logaddexp),
        MESHARD_TWO(logical_and),
        MESHARD_TWO(logical_or),
        MESHARD_TWO(logical_xor),
        MESHARD_TWO(maximum),
        MESHARD_TWO(minimum),
        MESHARD_TWO(multiply),
        MESHARD_TWO(nextafter),
        MESHARD_TWO(not_equal),
        MESHARD_TWO(remainder),
        MESHARD_TWO(shift_right_logical),
        MESHARD_TWO(subtract),
        MESHARD_TWO(swiglu),
        MESHARD_TWO(truncated_divide),
        MESHARD_TWO(zeta),
    });
    return all;
  }();
#undef MESHARD_ONE
#undef MESHARD_TWO
  return table;
}

}  // namespace meshard::conformance

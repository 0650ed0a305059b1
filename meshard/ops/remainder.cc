#include "meshard/ops/remainder.h"

#include "meshard/ops/comparison.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/internal/division_samples.h"
#include "meshard/ops/internal/element_writer.h"
#include "meshard/ops/internal/nonzero_divisor.h"
#include "meshard/ops/logical.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"
#include "meshard/ops/rounding.h"
#include "meshard/ops/subtract.h"
#include "meshard/ops/where.h"

namespace meshard {
using namespace internal;
namespace {

// StableHLO's remainder has the sign of the dividend. The divisor is added where the remainder is
// nonzero and its sign differs from the divisor's; a zero of floats gets the sign of the divisor.
void emit_remainder(const OpCall& call, OpEmission& out) {
  using Typed = OpEmission::Typed;
  const TensorType& type = call.result();
  ElementWriter w(type, out);
  Typed dividend = out.operands[0], divisor = out.operands[1], by = nonzero_divisor(call, out);
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

std::vector<OpSample> remainder_samples(SampleSource& source) {
  return division_samples(source, remainder, /*with_unsigned=*/true);
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
    .samples = remainder_samples,
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor remainder(In a, In b) { return element_wise::binary(remainder_op, a, b); }

}  // namespace meshard

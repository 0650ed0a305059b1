#include "meshard/ops/arithmetic.h"

#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/internal/element_writer.h"

namespace meshard {
using namespace internal;

extern constinit const OpDef add_op = element_wise::define({
    .name = "add",
    .operands = "a, b",
    .example = "add(x, y)",
    .domain = DTypeDomain::kNumberOrComplex,
    .mnemonic = "stablehlo.add",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = call.cotangents[0];
          out[1] = call.cotangents[0];
        },
});

Tensor add(In a, In b) { return element_wise::binary(add_op, a, b); }

extern constinit const OpDef subtract_op = element_wise::define({
    .name = "subtract",
    .operands = "a, b",
    .example = "subtract(x, y)",
    .domain = DTypeDomain::kNumberOrComplex,
    .mnemonic = "stablehlo.subtract",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = call.cotangents[0];
          if (call.needs(1)) out[1] = negative(call.cotangents[0]);
        },
});

Tensor subtract(In a, In b) { return element_wise::binary(subtract_op, a, b); }

extern constinit const OpDef multiply_op = element_wise::define({
    .name = "multiply",
    .operands = "a, b",
    .example = "multiply(x, y)",
    .domain = DTypeDomain::kNumberOrComplex,
    .mnemonic = "stablehlo.multiply",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          if (call.needs(0)) out[0] = multiply(call.cotangents[0], call.operands[1]);
          if (call.needs(1)) out[1] = multiply(call.cotangents[0], call.operands[0]);
        },
});

Tensor multiply(In a, In b) { return element_wise::binary(multiply_op, a, b); }

extern constinit const OpDef divide_op = element_wise::define({
    .name = "divide",
    .operands = "a, b",
    .example = "divide(x, y)",
    .domain = DTypeDomain::kFloatOrComplex,
    .mnemonic = "stablehlo.divide",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          Tensor scaled = divide(call.cotangents[0], call.operands[1]);
          out[0] = scaled;
          if (call.needs(1)) out[1] = negative(multiply(scaled, call.results[0]));
        },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor divide(In a, In b) { return element_wise::binary(divide_op, a, b); }

extern constinit const OpDef negative_op = element_wise::define({
    .name = "negative",
    .operands = "x",
    .example = "negative(x)",
    .domain = DTypeDomain::kNumberOrComplex,
    .mnemonic = "stablehlo.negate",
    .vjp = [](const VjpCall& call,
              std::span<Tensor> out) { out[0] = negative(call.cotangents[0]); },
});

Tensor negative(In x) { return element_wise::unary(negative_op, x); }

extern constinit const OpDef abs_op = element_wise::define({
    .name = "abs",
    .operands = "x",
    .example = "abs(x)",
    .domain = DTypeDomain::kSigned,
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          element_wise::check_operands(call, DTypeDomain::kSignedOrComplex);
          const TensorType& x = call.operand(0);
          results.push_back({real_dtype(x.dtype), x.shape});
        },
    .mnemonic = "stablehlo.abs",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor& x = call.operands[0];
          if (!is_complex(x.dtype())) {
            // The derivative is 1 at zero, as in JAX.
            const Tensor& given = call.cotangents[0];
            out[0] = where(greater_equal(x, 0), given, negative(given));
            return;
          }
          // d|z| = Re(conj(z) / |z| dz); zero at 0.
          const Tensor& size = call.results[0];
          Tensor divisor = where(equal(size, 0), 1, size);
          out[0] = multiply(conj(x), divide(call.cotangents[0], divisor));
        },
});

Tensor abs(In x) {
  if (is_unsigned_integer(element_wise::dtype_of_operand(abs_op, x))) return *x.tensor;
  if (x.tensor && is_complex(x.tensor->dtype()))
    return record(abs_op, nullptr, {x.tensor}, x.where);
  return element_wise::unary(abs_op, x);
}

extern constinit const OpDef sign_op = element_wise::define({
    .name = "sign",
    .operands = "x",
    .example = "sign(x)",
    .domain = DTypeDomain::kSigned,
    .mnemonic = "stablehlo.sign",
    .emit =
        [](const OpCall& call, OpEmission& out) {
          if (!is_floating(call.result().dtype)) return out.element_wise("stablehlo.sign");
          // StableHLO's sign of -0 is -0.
          ElementWriter w(call.result(), out);
          OpEmission::Typed zero = w.number(0);
          OpEmission::Typed sign = w.unary("stablehlo.sign", out.operands[0]);
          OpEmission::Typed is_zero = w.compare("EQ", out.operands[0], zero);
          w.finish_with_select(is_zero, zero, sign);
        },
    .vjp = element_wise::zero_vjp,
});

Tensor sign(In x) {
  if (x.tensor && is_complex(x.tensor->dtype())) {
    SourceScope line(x.where);
    Tensor size = abs(x), is_zero = equal(size, 0);
    return where(is_zero, 0, divide(x, where(is_zero, 1, size)));
  }
  // StableHLO's sign does not support unsigned integers.
  if (is_unsigned_integer(element_wise::dtype_of_operand(sign_op, x))) return minimum(x, 1);
  return element_wise::unary(sign_op, x);
}

}  // namespace meshard

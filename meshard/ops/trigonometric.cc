// Tested in meshard/ops/element_wise_table_test.cc.
#include "meshard/ops/trigonometric.h"

#include "meshard/ops/all.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/internal/complex_emission.h"

namespace meshard {

extern constinit const OpDef sin_op = element_wise::define_function({
    .name = "sin",
    .example = "sin(x)",
    .mnemonic = "stablehlo.sine",
    .vjp = element_wise::by_slope([](const VjpCall& call) { return cos(call.operands[0]); }),
});

Tensor sin(In x) { return element_wise::unary(sin_op, x); }

extern constinit const OpDef cos_op = element_wise::define_function({
    .name = "cos",
    .example = "cos(x)",
    .mnemonic = "stablehlo.cosine",
    .vjp =
        element_wise::by_slope([](const VjpCall& call) { return negative(sin(call.operands[0])); }),
});

Tensor cos(In x) { return element_wise::unary(cos_op, x); }

extern constinit const OpDef tan_op = element_wise::define_function({
    .name = "tan",
    .example = "tan(x)",
    .mnemonic = "stablehlo.tan",
    .vjp = element_wise::by_slope(
        [](const VjpCall& call) { return add(1, multiply(call.results[0], call.results[0])); }),
});

Tensor tan(In x) { return element_wise::unary(tan_op, x); }

extern constinit const OpDef asin_op = element_wise::define_function({
    .name = "asin",
    .example = "asin(tanh(x))",
    .mnemonic = "chlo.asin",
    .emit = internal::emit_asin,
    .vjp = element_wise::by_slope([](const VjpCall& call) {
      const Tensor& x = call.operands[0];
      return rsqrt(subtract(1, multiply(x, x)));
    }),
});

Tensor asin(In x) { return element_wise::unary(asin_op, x); }

extern constinit const OpDef acos_op = element_wise::define_function({
    .name = "acos",
    .example = "acos(tanh(x))",
    .mnemonic = "chlo.acos",
    .emit = internal::emit_acos,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor& x = call.operands[0];
          out[0] = negative(multiply(call.cotangents[0], rsqrt(subtract(1, multiply(x, x)))));
        },
});

Tensor acos(In x) { return element_wise::unary(acos_op, x); }

extern constinit const OpDef atan_op = element_wise::define_function({
    .name = "atan",
    .example = "atan(x)",
    .mnemonic = "chlo.atan",
    .emit = internal::emit_atan,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor& x = call.operands[0];
          out[0] = divide(call.cotangents[0], add(1, multiply(x, x)));
        },
});

Tensor atan(In x) { return element_wise::unary(atan_op, x); }

extern constinit const OpDef atan2_op = element_wise::define({
    .name = "atan2",
    .operands = "a, b",
    .example = "atan2(x, y)",
    .domain = DTypeDomain::kFloat,
    .mnemonic = "stablehlo.atan2",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor &a = call.operands[0], &b = call.operands[1];
          // Divides before multiplying by the cotangent: where the squares overflow, the quotients
          // are 0.
          Tensor square = add(multiply(a, a), multiply(b, b));
          if (call.needs(0)) out[0] = multiply(call.cotangents[0], divide(b, square));
          if (call.needs(1)) out[1] = negative(multiply(call.cotangents[0], divide(a, square)));
        },
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor atan2(In a, In b) { return element_wise::binary(atan2_op, a, b); }

extern constinit const OpDef sinh_op = element_wise::define_function({
    .name = "sinh",
    .example = "sinh(x)",
    .mnemonic = "chlo.sinh",
    .emit = internal::emit_sinh,
    .vjp = element_wise::by_slope([](const VjpCall& call) { return cosh(call.operands[0]); }),
});

Tensor sinh(In x) { return element_wise::unary(sinh_op, x); }

extern constinit const OpDef cosh_op = element_wise::define_function({
    .name = "cosh",
    .example = "cosh(x)",
    .mnemonic = "chlo.cosh",
    .emit = internal::emit_cosh,
    .vjp = element_wise::by_slope([](const VjpCall& call) { return sinh(call.operands[0]); }),
});

Tensor cosh(In x) { return element_wise::unary(cosh_op, x); }

extern constinit const OpDef tanh_op = element_wise::define_function({
    .name = "tanh",
    .example = "tanh(x)",
    .mnemonic = "stablehlo.tanh",
    .emit = internal::emit_tanh,
    .vjp = element_wise::by_slope([](const VjpCall& call) {
      return subtract(1, multiply(call.results[0], call.results[0]));
    }),
});

Tensor tanh(In x) { return element_wise::unary(tanh_op, x); }

extern constinit const OpDef asinh_op = element_wise::define_function({
    .name = "asinh",
    .example = "asinh(x)",
    .mnemonic = "chlo.asinh",
    .emit = internal::emit_asinh,
    .vjp = element_wise::by_slope([](const VjpCall& call) {
      const Tensor& x = call.operands[0];
      return rsqrt(add(1, multiply(x, x)));
    }),
});

Tensor asinh(In x) { return element_wise::unary(asinh_op, x); }

extern constinit const OpDef acosh_op = element_wise::define_function({
    .name = "acosh",
    .example = "acosh(add(1, exp(x)))",
    .mnemonic = "chlo.acosh",
    .emit = internal::emit_acosh,
    .vjp = element_wise::by_slope([](const VjpCall& call) {
      // Not x^2 - 1, which loses precision near 1; and of complex numbers two roots, because
      // the product has another branch cut.
      const Tensor& x = call.operands[0];
      Tensor before = subtract(x, 1), after = add(x, 1);
      return is_complex(x.dtype()) ? multiply(rsqrt(before), rsqrt(after))
                                   : rsqrt(multiply(before, after));
    }),
});

Tensor acosh(In x) { return element_wise::unary(acosh_op, x); }

extern constinit const OpDef atanh_op = element_wise::define_function({
    .name = "atanh",
    .example = "atanh(tanh(x))",
    .mnemonic = "chlo.atanh",
    .emit = internal::emit_atanh,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          // Not 1 - x^2, which loses precision near 1.
          const Tensor& x = call.operands[0];
          out[0] = divide(call.cotangents[0], multiply(subtract(1, x), add(1, x)));
        },
});

Tensor atanh(In x) { return element_wise::unary(atanh_op, x); }

}  // namespace meshard

// Tested in meshard/ops/element_wise_table_test.cc.
#include "meshard/ops/exponential.h"

#include "meshard/ops/arithmetic.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/internal/complex_emission.h"

namespace meshard {

extern constinit const OpDef exp_op = element_wise::define_function({
    .name = "exp",
    .example = "exp(x)",
    .mnemonic = "stablehlo.exponential",
    .emit = internal::emit_exp,
    .vjp = element_wise::by_slope([](const VjpCall& call) { return call.results[0]; }),
});

Tensor exp(In x) { return element_wise::unary(exp_op, x); }

extern constinit const OpDef expm1_op = element_wise::define_function({
    .name = "expm1",
    .example = "expm1(x)",
    .mnemonic = "stablehlo.exponential_minus_one",
    .emit = internal::emit_expm1,
    .vjp = element_wise::by_slope([](const VjpCall& call) { return add(call.results[0], 1); }),
});

Tensor expm1(In x) { return element_wise::unary(expm1_op, x); }

extern constinit const OpDef log_op = element_wise::define_function({
    .name = "log",
    .example = "log(x)",
    .mnemonic = "stablehlo.log",
    .emit = internal::emit_log,
    .vjp = [](const VjpCall& call,
              std::span<Tensor> out) { out[0] = divide(call.cotangents[0], call.operands[0]); },
});

Tensor log(In x) { return element_wise::unary(log_op, x); }

extern constinit const OpDef log1p_op = element_wise::define_function({
    .name = "log1p",
    .example = "log1p(x)",
    .mnemonic = "stablehlo.log_plus_one",
    .emit = internal::emit_log1p,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = divide(call.cotangents[0], add(call.operands[0], 1));
        },
});

Tensor log1p(In x) { return element_wise::unary(log1p_op, x); }

extern constinit const OpDef logistic_op = element_wise::define_function({
    .name = "logistic",
    .example = "logistic(x)",
    .mnemonic = "stablehlo.logistic",
    .vjp = element_wise::by_slope([](const VjpCall& call) {
      return multiply(call.results[0], subtract(1, call.results[0]));
    }),
});

Tensor logistic(In x) { return element_wise::unary(logistic_op, x); }

}  // namespace meshard

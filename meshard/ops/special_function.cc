#include "meshard/ops/special_function.h"

#include <numbers>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/element_wise.h"

namespace meshard {

extern constinit const OpDef erf_op = element_wise::define_function({
    .name = "erf",
    .example = "erf(x)",
    .domain = DTypeDomain::kFloat,
    .mnemonic = "chlo.erf",
    .vjp = element_wise::by_slope([](const VjpCall& call) {
      // 2 / sqrt(pi) * exp(-x^2)
      const Tensor& x = call.operands[0];
      Tensor bell = exp(negative(multiply(x, x)));
      Tensor scale = element_wise::literal(2 * std::numbers::inv_sqrtpi, x);
      return multiply(scale, bell);
    }),
});

Tensor erf(In x) { return element_wise::unary(erf_op, x); }

extern constinit const OpDef erfc_op = element_wise::define_function({
    .name = "erfc",
    .example = "erfc(x)",
    .domain = DTypeDomain::kFloat,
    .mnemonic = "chlo.erfc",
    .vjp = element_wise::by_slope([](const VjpCall& call) {
      // -2 / sqrt(pi) * exp(-x^2)
      const Tensor& x = call.operands[0];
      Tensor bell = exp(negative(multiply(x, x)));
      Tensor scale = element_wise::literal(-2 * std::numbers::inv_sqrtpi, x);
      return multiply(scale, bell);
    }),
});

Tensor erfc(In x) { return element_wise::unary(erfc_op, x); }

extern constinit const OpDef erf_inv_op = element_wise::define_function({
    .name = "erf_inv",
    .example = "erf_inv(x)",
    .domain = DTypeDomain::kFloat,
    .mnemonic = "chlo.erf_inv",
    .vjp = element_wise::by_slope([](const VjpCall& call) {
      // sqrt(pi) / 2 * exp(y^2)
      const Tensor& y = call.results[0];
      Tensor scale = element_wise::literal(0.5 / std::numbers::inv_sqrtpi, y);
      return multiply(scale, exp(multiply(y, y)));
    }),
});

Tensor erf_inv(In x) { return element_wise::unary(erf_inv_op, x); }

extern constinit const OpDef lgamma_op = element_wise::define_function({
    .name = "lgamma",
    .example = "lgamma(x)",
    .domain = DTypeDomain::kFloat,
    .mnemonic = "chlo.lgamma",
    .vjp = element_wise::by_slope([](const VjpCall& call) { return digamma(call.operands[0]); }),
    .traits = {.recomputation = Recomputation::kSeries},
});

Tensor lgamma(In x) { return element_wise::unary(lgamma_op, x); }

extern constinit const OpDef digamma_op = element_wise::define_function({
    .name = "digamma",
    .example = "digamma(x)",
    .domain = DTypeDomain::kFloat,
    .mnemonic = "chlo.digamma",
    .vjp = element_wise::by_slope([](const VjpCall& call) {
      const Tensor& x = call.operands[0];
      // The trigamma function by zeta: polygamma multiplies by a rounded factor.
      return zeta(element_wise::literal(2, x), x);
    }),
    .traits = {.recomputation = Recomputation::kSeries},
});

Tensor digamma(In x) { return element_wise::unary(digamma_op, x); }

extern constinit const OpDef polygamma_op = element_wise::define({
    .name = "polygamma",
    .operands = "order, x",
    .example = "polygamma(1, exp(x))",
    .domain = DTypeDomain::kFloat,
    .mnemonic = "chlo.polygamma",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor &order = call.operands[0], &x = call.operands[1];
          if (call.needs(0)) fail_at(call.node, "has no derivative with respect to the order");
          if (call.needs(1)) out[1] = multiply(call.cotangents[0], polygamma(add(order, 1), x));
        },
    .traits = {.recomputation = Recomputation::kSeries},
});

Tensor polygamma(In order, In x) { return element_wise::binary(polygamma_op, order, x); }

extern constinit const OpDef zeta_op = element_wise::define({
    .name = "zeta",
    .operands = "s, q",
    .example = "zeta(2, exp(x))",
    .domain = DTypeDomain::kFloat,
    .mnemonic = "chlo.zeta",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          // -s * zeta(s + 1, q)
          const Tensor &s = call.operands[0], &q = call.operands[1];
          if (call.needs(0)) fail_at(call.node, "has no derivative with respect to s");
          if (call.needs(1))
            out[1] = negative(multiply(call.cotangents[0], multiply(s, zeta(add(s, 1), q))));
        },
    .traits = {.recomputation = Recomputation::kSeries},
});

Tensor zeta(In s, In q) { return element_wise::binary(zeta_op, s, q); }

}  // namespace meshard

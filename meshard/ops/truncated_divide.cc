#include "meshard/ops/truncated_divide.h"

#include "meshard/ops/definition/element_wise.h"

namespace meshard {
namespace {

std::vector<OpSample> truncated_divide_samples(SampleSource& source) {
  auto call = [](std::span<const Tensor> x) { return truncated_divide(x[0], x[1]); };
  auto of = [&](DType dtype, Shape a, Shape b, double low, double high) {
    return std::vector<HostArray>{source.uniform(dtype, std::move(a), low, high),
                                  source.uniform(dtype, std::move(b), 1, 7)};
  };
  return {
      {"matrix", of(DType::i32, {4, 8}, {4, 8}, -20, 20), call, false},
      {"row broadcast", of(DType::i64, {4, 8}, {8}, -20, 20), call, false},
      {"bytes", of(DType::u8, {8}, {8}, 0, 200), call, false},
      {"by a negative number",
       {source.uniform(DType::i32, {4, 2, 8}, -20, 20)},
       [](std::span<const Tensor> x) { return truncated_divide(x[0], -3); },
       false},
  };
}

}  // namespace

extern constinit const OpDef truncated_divide_op = element_wise::define({
    .name = "truncated_divide",
    .operands = "a, b",
    .example = "truncated_divide(astype(x, DType::i32), 3)",
    .domain = DTypeDomain::kInteger,
    .mnemonic = "stablehlo.divide",
    .vjp = kNotDifferentiable,
    .samples = truncated_divide_samples,
    .traits = {.recomputation = Recomputation::kFunction},
});

Tensor truncated_divide(In a, In b) { return element_wise::binary(truncated_divide_op, a, b); }

}  // namespace meshard

#include "meshard/ops/truncated_divide.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"

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

extern constinit const OpDef truncated_divide_op = {
    .name = "truncated_divide",
    .operands = "a, b",
    .doc = "The quotient of integers, rounded toward zero.",
    .example = "truncated_divide(astype(x, DType::i32), 3)",
    .infer = element_wise::infer_same<element_wise::Domain::kInteger>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.divide"); },
    .vjp = kNotDifferentiable,
    .batch = element_wise::batch,
    .samples = truncated_divide_samples,
};

Tensor truncated_divide(In a, In b) {
  return element_wise::binary(truncated_divide_op, element_wise::Domain::kInteger, a, b);
}

}  // namespace meshard

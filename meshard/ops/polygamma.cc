#include "meshard/ops/polygamma.h"

#include "meshard/ops/add.h"
#include "meshard/ops/constant.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/rounding.h"

namespace meshard {
namespace {

// The first operand is a constant, because there is no derivative with respect to it.
std::vector<OpSample> polygamma_samples(SampleSource& source) {
  auto of = [](std::vector<float> order, Shape shape, DType dtype = DType::f32) {
    HostArray first = HostArray::from_vector(std::move(order), std::move(shape)).astype(dtype);
    return [=](std::span<const Tensor> x) { return polygamma(constant(first), x[0]); };
  };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"vector", {source.uniform(f64, {4}, 0.5, 4)}, of({1, 2, 3, 1}, {4}, f64)},
      {"matrix", {source.uniform(f64, {4, 8}, 0.5, 4)}, of({2}, {}, f64)},
      {"rank 3", {source.uniform(f32, {4, 2, 8}, 0.5, 4)}, of({3}, {1})},
      {"bf16", {source.uniform(DType::bf16, {4, 8}, 0.5, 4)}, of({2}, {}, DType::bf16), false},
      {"both broadcast",
       {source.uniform(f32, {4, 1}, 2, 3), source.uniform(f32, {1, 8}, 0.5, 4)},
       [](std::span<const Tensor> x) { return polygamma(floor(x[0]), x[1]); },
       false},
  };
}

}  // namespace

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
    .samples = polygamma_samples,
    .traits = {.recomputation = Recomputation::kSeries},
});

Tensor polygamma(In order, In x) { return element_wise::binary(polygamma_op, order, x); }

}  // namespace meshard

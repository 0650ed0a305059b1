#include "meshard/ops/zeta.h"

#include "meshard/ops/add.h"
#include "meshard/ops/constant.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"

namespace meshard {
namespace {

// The first operand is a constant, because there is no derivative with respect to it.
std::vector<OpSample> zeta_samples(SampleSource& source) {
  auto of = [](std::vector<float> s, Shape shape, DType dtype = DType::f32) {
    HostArray first = HostArray::from_vector(std::move(s), std::move(shape)).astype(dtype);
    return [=](std::span<const Tensor> x) { return zeta(constant(first), x[0]); };
  };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"vector", {source.uniform(f64, {4}, 0.5, 4)}, of({2, 3, 1.5, 4}, {4}, f64)},
      {"matrix", {source.uniform(f64, {4, 8}, 0.5, 4)}, of({2}, {}, f64)},
      {"rank 3", {source.uniform(f32, {4, 2, 8}, 0.5, 4)}, of({3}, {1})},
      {"bf16", {source.uniform(DType::bf16, {4, 8}, 0.5, 4)}, of({2}, {}, DType::bf16), false},
      {"both broadcast",
       {source.uniform(f32, {4, 1}, 2, 3), source.uniform(f32, {1, 8}, 0.5, 4)},
       [](std::span<const Tensor> x) { return zeta(x[0], x[1]); },
       false},
  };
}

}  // namespace

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
    .samples = zeta_samples,
    .traits = {.recomputation = Recomputation::kSeries},
});

Tensor zeta(In s, In q) { return element_wise::binary(zeta_op, s, q); }

}  // namespace meshard

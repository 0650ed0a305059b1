#include "meshard/ops/reduce_precision.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"

namespace meshard {
namespace {

void infer_reduce_precision(const OpCall& call, ResultTypes& results) {
  const auto& [exponent, mantissa] = call.as<ReducePrecisionAttributes>();
  if (exponent < 1 || mantissa < 0 || exponent > 64 || mantissa > 64)
    call.fail("invalid float format: ", exponent, " exponent bits and ", mantissa,
              " mantissa bits");
  element_wise::infer(call, results);
}

std::vector<OpSample> reduce_precision_samples(SampleSource& source) {
  auto to = [](std::int64_t exponent, std::int64_t mantissa) {
    return [=](std::span<const Tensor> x) { return reduce_precision(x[0], exponent, mantissa); };
  };
  DType f32 = DType::f32;
  return {
      {"as f16", {source.uniform(f32, {4, 8}, -1e5, 1e5)}, to(5, 10), false},
      {"as bf16", {source.uniform(f32, {8})}, to(8, 7), false},
      {"f64 as f32", {source.uniform(DType::f64, {4, 2, 8})}, to(8, 23), false},
      {"no mantissa", {source.uniform(f32, {4, 8})}, to(8, 0), false},
  };
}

}  // namespace

extern constinit const OpDef reduce_precision_op = element_wise::define({
    .name = "reduce_precision",
    .operands = "x",
    .example = "reduce_precision(x, 5, 10)",
    .domain = DTypeDomain::kFloat,
    .infer = infer_reduce_precision,
    .mnemonic = "stablehlo.reduce_precision",
    .emit =
        [](const OpCall& call, OpEmission& out) {
          const auto& [exponent, mantissa] = call.as<ReducePrecisionAttributes>();
          out.op("stablehlo.reduce_precision")
              .i32("exponent_bits", static_cast<std::int32_t>(exponent))
              .i32("mantissa_bits", static_cast<std::int32_t>(mantissa))
              .done();
        },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const auto& [exponent, mantissa] = call.as<ReducePrecisionAttributes>();
          out[0] = reduce_precision(call.cotangents[0], exponent, mantissa);
        },
    .samples = reduce_precision_samples,
    .parse_attributes = parse_attributes<ReducePrecisionAttributes>,
});

Tensor reduce_precision(In x, std::int64_t exponent_bits, std::int64_t mantissa_bits) {
  DType dtype = element_wise::enter_domain(
      reduce_precision_op, element_wise::dtype_of_operand(reduce_precision_op, x), x.where);
  Tensor operand = element_wise::to_tensor(x, dtype);
  return record(reduce_precision_op,
                make_attributes(ReducePrecisionAttributes{exponent_bits, mantissa_bits}),
                {&operand}, x.where);
}

}  // namespace meshard

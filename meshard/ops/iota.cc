#include "meshard/ops/iota.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"

namespace meshard {
namespace {

void infer_iota(const OpCall& call, ResultTypes& results) {
  const auto& [dtype, shape, dimension] = call.as<IotaAttributes>();
  if (dtype == DType::bool_) call.fail("takes integers or floats, not bool");
  if (dimension < 0 || dimension >= shape.rank())
    call.fail("dimension ", dimension, " is outside ", shape, ", which has rank ", shape.rank());
  results.push_back({dtype, shape});
}

std::vector<OpSample> iota_samples(SampleSource&) {
  auto of = [](DType dtype, Shape shape, std::int64_t dimension) {
    return [=](std::span<const Tensor>) { return iota(dtype, shape, dimension); };
  };
  return {
      {"vector", {}, of(DType::i32, {8}, 0), false},
      {"rows", {}, of(DType::f32, {4, 8}, 0), false},
      {"columns", {}, of(DType::u32, {4, 8}, -1), false},
      {"middle of rank 3", {}, of(DType::i64, {4, 2, 8}, 1), false},
  };
}

}  // namespace

extern constinit const OpDef iota_op = {
    .name = "iota",
    .operands = "",
    .example = "iota(DType::i32, {4, 8}, 0)",
    .infer = infer_iota,
    .sharding_rule = element_wise::rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          out.op("stablehlo.iota")
              .i64("iota_dimension", call.as<IotaAttributes>().dimension)
              .done();
        },
    .vjp = element_wise::zero_vjp,
    .samples = iota_samples,
    .parse_attributes = parse_attributes<IotaAttributes>,
    .traits = {.recomputation = Recomputation::kFree},
};

Tensor iota(DType dtype, Shape shape, std::int64_t dimension, SourceLocation where) {
  int normal = normalize_dimension(dimension, shape.rank(), "iota", effective_source(where));
  return record(iota_op, make_attributes(IotaAttributes{dtype, std::move(shape), normal}), {},
                where);
}

}  // namespace meshard

#include "meshard/ops/dynamic_update_slice.h"

#include "meshard/graph/explicit_sharding.h"
#include "meshard/ops/astype.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/dynamic_slice.h"
#include "meshard/ops/internal/index_dimensions.h"
#include "meshard/ops/internal/resized_dimension.h"
#include "meshard/ops/internal/start_indices.h"
#include "meshard/ops/scatter_add.h"
#include "meshard/ops/where.h"

namespace meshard {
using namespace internal;
namespace {

void infer_dynamic_update_slice(const OpCall& call, ResultTypes& results) {
  const TensorType &operand = call.operand(0), &update = call.operand(1);
  if (update.dtype != operand.dtype || update.rank() != operand.rank())
    call.fail("an update of ", operand, " must have the same dtype and rank, not ", update);
  check_starts(call, operand, 2);
  for (int d = 0; d < operand.rank(); ++d)
    if (update.shape[d] > operand.shape[d])
      call.fail("the update ", update, " is larger than ", operand, " in dimension ", d);
  results.push_back(operand);
}

ShardingRule dynamic_update_slice_rule(const OpCall& call) {
  ShardingRuleBuilder builder;
  BoxFactors factors = box_factors(builder, call.operand(0).shape, call.operand(1).shape);
  builder.operand(factors.whole).operand(std::move(factors.box));
  for (std::size_t i = 2; i < call.operands.size(); ++i) builder.operand({});
  return builder.result(std::move(factors.whole)).build();
}

void dynamic_update_slice_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor& cotangent = call.cotangents[0];
  const TensorType& update = call.operands[1].type();
  std::vector<In> starts(call.operands.begin() + 2, call.operands.end());
  if (call.needs(0)) out[0] = dynamic_update_slice(cotangent, filled(update, 0), starts);
  if (call.needs(1)) out[1] = dynamic_slice(cotangent, starts, update.shape.sizes());
}

// Writes each member's update at its own position, as a scatter_add to -0.0: x + -0.0 is x, also
// for -0.0 and NaN.
Tensor update_each_member(const BatchCall& call) {
  Tensor x = batched_operand(call, 0), update = batched_operand(call, 1);
  ScatterDimensions dims{
      .input_batching_dims = {0}, .scatter_indices_batching_dims = {0}, .index_vector_dim = 1};
  for (int d = 1; d < x.shape().rank(); ++d) {
    dims.update_window_dims.push_back(d);
    dims.scatter_dims_to_operand_dims.push_back(d);
  }
  Dimensions window = with_entry(1, call.member(1).shape.sizes());
  Tensor indices = clamp_indices(batched_starts(call, 2), dims, x.shape(), window);
  auto scattered = [&](const Tensor& values, double empty) {
    return scatter_add(filled({values.dtype(), x.shape()}, empty), indices, values, dims);
  };
  Tensor is_update = greater(scattered(filled({DType::i32, update.shape()}, 1), 0), 0);
  DType dtype = x.dtype() == DType::bool_ ? DType::i32 : x.dtype();
  Tensor moved = scattered(astype(update, dtype), is_floating(dtype) ? -0.0 : 0.0);
  return where(is_update, astype(moved, x.dtype()), x);
}

void batch_dynamic_update_slice(const BatchCall& call, std::span<Tensor> results) {
  results[0] = starts_are_batched(call, 2)
                   ? update_each_member(call)
                   : dynamic_update_slice(batched_operand(call, 0), batched_operand(call, 1),
                                          starts_behind_batch(call, 2));
}

std::vector<OpSample> dynamic_update_slice_samples(SampleSource& source) {
  auto call = [](std::span<const Tensor> x) {
    return dynamic_update_slice(x[0], x[1], {x.begin() + 2, x.end()});
  };
  auto start = [&](double low, double high) { return source.uniform(DType::i32, {}, low, high); };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"vector", {source.uniform(f64, {16}), source.uniform(f64, {8}), start(0, 8)}, call},
      {"a row",
       {source.uniform(f64, {8, 4}), source.uniform(f64, {1, 4}), start(0, 7), start(0, 0)},
       call},
      {"outside",
       {source.uniform(f64, {8, 4}), source.uniform(f64, {2, 3}), start(-9, -1), start(7, 9)},
       call},
      {"all",
       {source.uniform(f32, {4, 8}), source.uniform(f32, {4, 8}), start(0, 3), start(0, 3)},
       call},
      {"nothing", {source.uniform(f64, {4}), source.uniform(f64, {0}), start(0, 3)}, call},
  };
}

}  // namespace

extern constinit const OpDef dynamic_update_slice_op = {
    .name = "dynamic_update_slice",
    .operands = "x, update, starts...",
    .doc = "The operand with another tensor in place of the slice that begins at computed indices.",
    .example = "dynamic_update_slice(x, sum(x, 0, true), {1, 0})",
    .infer = infer_dynamic_update_slice,
    .sharding_rule = dynamic_update_slice_rule,
    .emit =
        [](const OpCall&, OpEmission& out) {
          InlineVector<stablehlo::Typed, 4> operands = with_written_starts(out, 2);
          out.writer
              .op("stablehlo.dynamic_update_slice", out.results,
                  std::span<const stablehlo::Typed>(operands.data(), operands.size()), out.location)
              .done();
        },
    .vjp = dynamic_update_slice_vjp,
    .batch = batch_dynamic_update_slice,
    .samples = dynamic_update_slice_samples,
    .sharding_conflict = [](const OpCall&, std::span<const Sharding* const> operands)
        -> std::string { return unlike_operands(operands.first(2)); },
};

Tensor dynamic_update_slice(In x, In update, const std::vector<In>& starts) {
  SourceScope line(x.where);
  std::vector<Tensor> operands = start_tensors(dynamic_update_slice_op, starts);
  Tensor operand = operand_tensor(dynamic_update_slice_op, x);
  if (update.tensor && update.tensor->defined())
    check_numbers(dynamic_update_slice_op, starts, operand.shape(), update.tensor->shape().sizes(),
                  x.where);
  operands.insert(operands.begin(), {operand, element_wise::to_tensor(update, operand.dtype())});
  std::vector<const Tensor*> pointers;
  for (const Tensor& each : operands) pointers.push_back(&each);
  return record(dynamic_update_slice_op, nullptr, std::span<const Tensor* const>(pointers),
                x.where);
}

}  // namespace meshard

#include "meshard/ops/layer_slice.h"

#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/pad.h"
#include "meshard/ops/permute_dims.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/rolling/layer_slices.h"

namespace meshard {
namespace {

constinit thread_local std::uint64_t slices_recorded = 0;

// The slice as a part of the stack: with a first dimension of size 1.
Shape row_of(const Shape& stacked) {
  Dimensions sizes = stacked.sizes();
  sizes[0] = 1;
  return Shape(std::move(sizes));
}

Dimensions first_only(std::int64_t first, int rank) {
  Dimensions all(static_cast<std::size_t>(rank), 0);
  all[0] = first;
  return all;
}

void infer_layer_slice(const OpCall& call, ResultTypes& results) {
  std::int64_t layer = call.as<LayerSliceAttributes>().layer;
  const TensorType& stacked = call.operand(0);
  if (stacked.rank() == 0) call.fail("x is ", stacked, ": it has no dimension for the layers");
  if (layer < 0 || layer >= stacked.shape[0])
    call.fail("layer ", layer, " is not one of the ", stacked.shape[0], " layers of ", stacked);
  Dimensions sizes;
  for (int d = 1; d < stacked.shape.rank(); ++d) sizes.push_back(stacked.shape[d]);
  results.push_back({stacked.dtype, Shape(std::move(sizes))});
}

ShardingRule layer_slice_rule(const OpCall& call) {
  const Shape& stacked = call.operand(0).shape;
  ShardingRuleBuilder builder;
  TensorFactors in{{builder.factor(stacked[0], FactorKind::kNeedReplication)}}, out;
  for (int d = 1; d < stacked.rank(); ++d) {
    in.push_back({builder.factor(stacked[d])});
    out.push_back(in.back());
  }
  return builder.operand(std::move(in)).result(std::move(out)).build();
}

void emit_layer_slice(const OpCall& call, OpEmission& out) {
  std::int64_t layer = call.as<LayerSliceAttributes>().layer;
  TensorType row{call.operand(0).dtype, row_of(call.operand(0).shape)};
  Dimensions limits = call.operand(0).shape.sizes();
  limits[0] = layer + 1;
  OpEmission::Typed cut{out.writer.temporary(), row};
  out.writer.op("stablehlo.slice", {cut}, {out.operands[0]}, out.location)
      .i64_array("start_indices", first_only(layer, row.shape.rank()))
      .i64_array("limit_indices", limits)
      .i64_array("strides", Dimensions(limits.size(), 1))
      .done();
  out.writer.op("stablehlo.reshape", {out.results[0]}, {cut}, out.location).done();
}

// The cotangent at the position of the slice, with zeros around.
void layer_slice_vjp(const VjpCall& call, std::span<Tensor> out) {
  std::int64_t layer = call.as<LayerSliceAttributes>().layer;
  const Shape& stacked = call.operands[0].shape();
  Tensor row = reshape(call.cotangents[0], row_of(stacked));
  out[0] = pad(row, 0, first_only(layer, stacked.rank()),
               first_only(stacked[0] - 1 - layer, stacked.rank()));
}

// The layers stay the first dimension of the operand; the batch follows them.
void batch_layer_slice(const BatchCall& call, std::span<Tensor> results) {
  Dimensions order{1, 0};
  for (int d = 2; d < call.operands[0].rank(); ++d) order.push_back(d);
  results[0] = layer_slice(permute_dims(call.operands[0], std::move(order)),
                           call.as<LayerSliceAttributes>().layer);
}

std::vector<OpSample> layer_slice_samples(SampleSource& source) {
  auto number = [](std::int64_t layer) {
    return [=](std::span<const Tensor> x) { return layer_slice(x[0], layer); };
  };
  return {
      {"first", {source.uniform(DType::f64, {4, 8})}, number(0)},
      {"last", {source.uniform(DType::f32, {4, 8, 12})}, number(3)},
      {"scalars", {source.uniform(DType::f64, {8})}, number(5)},
      {"one layer", {source.uniform(DType::f32, {1, 4, 8})}, number(0)},
      {"integers", {source.uniform(DType::i32, {4, 8}, -9, 9)}, number(2)},
  };
}

}  // namespace

extern constinit const OpDef layer_slice_op = {
    .name = "layer_slice",
    .operands = "x",
    .example = "layer_slice(x, 1)",
    .infer = infer_layer_slice,
    .sharding_rule = layer_slice_rule,
    .emit = emit_layer_slice,
    .vjp = layer_slice_vjp,
    .batch = batch_layer_slice,
    .samples = layer_slice_samples,
    .parse_attributes = parse_attributes<LayerSliceAttributes>,
    .traits = {.takes_part = true},
};

Tensor layer_slice(In stacked, std::int64_t layer) {
  ++slices_recorded;
  Tensor operand = operand_tensor(layer_slice_op, stacked);
  return record(layer_slice_op, make_attributes(LayerSliceAttributes{layer}), {&operand},
                stacked.where);
}

std::uint64_t internal::layer_slices_recorded() { return slices_recorded; }

}  // namespace meshard

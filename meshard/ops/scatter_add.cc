#include "meshard/ops/scatter_add.h"

#include "meshard/ops/internal/scattered_windows.h"

namespace meshard {
using namespace internal;
namespace {

void infer_scatter_add(const OpCall& call, ResultTypes& results) {
  if (call.operand(0).dtype == DType::bool_)
    call.fail("takes integers or floats, not ", call.operand(0));
  infer_scatter(call, results);
}

ShardingRule scatter_add_rule(const OpCall& call) {
  return scatter_rule(call, FactorKind::kReduction);
}

void scatter_add_vjp(const VjpCall& call, std::span<Tensor> out) {
  if (call.needs(0)) out[0] = call.cotangents[0];
  if (call.needs(2)) out[2] = scattered_windows(call.cotangents[0], call);
}

std::vector<OpSample> scatter_add_samples(SampleSource& source) {
  auto by = [](ScatterDimensions dims) {
    return [=](std::span<const Tensor> x) { return scatter_add(x[0], x[1], x[2], dims); };
  };
  DType f32 = DType::f32, f64 = DType::f64, i32 = DType::i32;
  auto of = [&](DType dtype, Shape operand, HostArray indices, Shape updates) {
    return std::vector<HostArray>{source.uniform(dtype, operand), std::move(indices),
                                  source.uniform(dtype, updates)};
  };
  ScatterDimensions rows{.update_window_dims = {1},
                         .inserted_window_dims = {0},
                         .scatter_dims_to_operand_dims = {0},
                         .index_vector_dim = 1};
  return {
      {"rows", of(f64, {8, 4}, source.uniform(i32, {12}, 0, 7), {12, 4}), by(rows)},
      {"rows, outside", of(f64, {4, 8}, source.uniform(i32, {8}, -2, 5), {8, 8}), by(rows)},
      {"integers", of(DType::i32, {8, 4}, source.uniform(i32, {4}, 0, 7), {4, 4}), by(rows)},
      {"points", of(f64, {4, 8}, source.uniform(i32, {2, 8}, 0, 3), {8}),
       by({.inserted_window_dims = {0, 1}, .scatter_dims_to_operand_dims = {1, 0}})},
      {"boxes, outside", of(f64, {6, 8}, source.uniform(DType::i8, {4, 2}, -2, 7), {2, 4, 3}),
       by({.update_window_dims = {0, 2},
           .scatter_dims_to_operand_dims = {0, 1},
           .index_vector_dim = 1})},
      {"batches", of(f64, {4, 8, 2}, source.uniform(i32, {4, 3, 1}, 0, 7), {4, 3, 2}),
       by({.update_window_dims = {2},
           .inserted_window_dims = {1},
           .input_batching_dims = {0},
           .scatter_indices_batching_dims = {0},
           .scatter_dims_to_operand_dims = {1},
           .index_vector_dim = 2})},
      {"one window", of(f32, {8, 4}, source.uniform(i32, {}, 0, 7), {4}),
       by({.update_window_dims = {0},
           .inserted_window_dims = {0},
           .scatter_dims_to_operand_dims = {0}})},
  };
}

}  // namespace

extern constinit const OpDef scatter_add_op = {
    .name = "scatter_add",
    .operands = "operand, indices, updates",
    .example =
        "scatter_add(x, iota(DType::i32, {2}, 0), y, {.update_window_dims = {1}, "
        ".inserted_window_dims = {0}, .scatter_dims_to_operand_dims = {0}, "
        ".index_vector_dim = 1})",
    .infer = infer_scatter_add,
    .sharding_rule = scatter_add_rule,
    .emit = [](const OpCall& call, OpEmission& out) { emit_scatter(call, out, "stablehlo.add"); },
    .vjp = scatter_add_vjp,
    .batch = batch_scatter,
    .samples = scatter_add_samples,
    .parse_attributes = parse_attributes<ScatterAttributes>,
};

Tensor scatter_add(In operand, In indices, In updates, ScatterDimensions dimensions,
                   bool indices_are_sorted, bool unique_indices) {
  return record_scatter(scatter_add_op, operand, indices, updates, std::move(dimensions),
                        indices_are_sorted, unique_indices);
}

}  // namespace meshard

#include "meshard/ops/scatter_add.h"

#include <algorithm>

#include "meshard/ops/astype.h"
#include "meshard/ops/batch_rule.h"
#include "meshard/ops/broadcast_in_dim.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/gather.h"
#include "meshard/ops/index_dimensions.h"
#include "meshard/ops/operand.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/where.h"

namespace meshard {
namespace {

IndexDimensions view(const ScatterAddAttributes& dims) {
  return {dims.update_window_dims,           dims.inserted_window_dims,
          dims.input_batching_dims,          dims.scatter_indices_batching_dims,
          dims.scatter_dims_to_operand_dims, dims.index_vector_dim};
}

// The size of a window in each of the operand's dimensions.
Dimensions window_sizes(const ScatterAddAttributes& dims, int operand_rank, const Shape& updates) {
  Dimensions sizes(static_cast<std::size_t>(operand_rank), 1);
  Dimensions window = window_operand_dimensions(view(dims), operand_rank);
  for (std::size_t i = 0; i < window.size(); ++i)
    sizes[static_cast<std::size_t>(window[i])] = updates[dims.update_window_dims[i]];
  return sizes;
}

void infer_scatter_add(const OpCall& call, ResultTypes& results) {
  const auto& dims = call.as<ScatterAddAttributes>();
  const TensorType &operand = call.operand(0), &indices = call.operand(1),
                   &updates = call.operand(2);
  if (updates.dtype != operand.dtype || operand.dtype == DType::bool_)
    call.fail("operand and updates are of one number dtype, not ", operand, " and ", updates);
  check_index_dimensions(call, view(dims), operand, indices, updates.rank());
  Dimensions batch = batch_index_dimensions(view(dims), indices.rank());
  if (static_cast<std::size_t>(updates.rank()) != batch.size() + dims.update_window_dims.size())
    call.fail("updates ", updates, " have rank ", updates.rank(), ": ", batch.size(),
              " dimensions of indices ", indices, " and ", dims.update_window_dims.size(),
              " of windows are needed");
  Dimensions window = window_operand_dimensions(view(dims), operand.rank());
  std::size_t next_window = 0, next_batch = 0;
  for (int d = 0; d < updates.rank(); ++d) {
    if (next_window < window.size() && dims.update_window_dims[next_window] == d) {
      std::int64_t o = window[next_window++];
      if (updates.shape[d] > operand.shape[o])
        call.fail("a window exceeds the operand: updates dimension ", d, " = ", updates.shape[d],
                  ", operand dimension ", o, " = ", operand.shape[o]);
    } else {
      std::int64_t i = batch[next_batch++];
      if (updates.shape[d] != indices.shape[i])
        call.fail("sizes differ: updates dimension ", d, " = ", updates.shape[d],
                  ", indices dimension ", i, " = ", indices.shape[i]);
    }
  }
  results.push_back(operand);
}

ShardingRule scatter_add_rule(const OpCall& call) {
  return indexing_rule(view(call.as<ScatterAddAttributes>()), call.operand(0).shape,
                       call.operand(1).shape, call.operand(2).shape, /*scatter=*/true);
}

void emit(const OpCall& call, OpEmission& out) {
  const auto& dims = call.as<ScatterAddAttributes>();
  stablehlo::ScatterDimensionNumbers numbers;
  numbers.update_window_dims = dims.update_window_dims;
  numbers.inserted_window_dims = dims.inserted_window_dims;
  numbers.input_batching_dims = dims.input_batching_dims;
  numbers.scatter_indices_batching_dims = dims.scatter_indices_batching_dims;
  numbers.scatter_dims_to_operand_dims = dims.scatter_dims_to_operand_dims;
  numbers.index_vector_dim = dims.index_vector_dim;
  TensorType scalar{call.operand(0).dtype, {}};
  stablehlo::Value a = out.writer.block_argument(), b = out.writer.block_argument();
  TensorType index_type = written_index_type(call.operand(1));
  stablehlo::Value indices = written_indices(out, index_type);
  out.writer
      .op("stablehlo.scatter", out.results,
          {out.operands[0], {indices, index_type}, out.operands[2]}, out.location)
      .dimension_numbers("scatter_dimension_numbers", numbers)
      .boolean("indices_are_sorted", dims.indices_are_sorted)
      .boolean("unique_indices", dims.unique_indices)
      .region({{a, scalar}, {b, scalar}},
              [&] {
                stablehlo::Value both = out.writer.temporary();
                out.writer.elementwise("stablehlo.add", both, {a, b}, scalar);
                out.writer.terminate({{both, scalar}});
              })
      .done();
}

// True for each update whose window fits; of the updates' shape.
Tensor fits(const Tensor& indices, const Tensor& clamped, const ScatterAddAttributes& dims,
            const Shape& updates) {
  Tensor same = equal(astype(indices, clamped.dtype()), clamped);
  if (dims.index_vector_dim < same.rank()) same = all(same, dims.index_vector_dim);
  Dimensions to;
  for (int d = 0; d < updates.rank(); ++d)
    if (std::find(dims.update_window_dims.begin(), dims.update_window_dims.end(), d) ==
        dims.update_window_dims.end())
      to.push_back(d);
  return broadcast_in_dim(same, updates, std::move(to));
}

void scatter_add_vjp(const VjpCall& call, std::span<Tensor> out) {
  const auto& dims = call.as<ScatterAddAttributes>();
  const Tensor& cotangent = call.cotangents[0];
  if (call.needs(0)) out[0] = cotangent;
  if (!call.needs(2)) return;
  const Shape& operand = call.operands[0].shape();
  const Shape& updates = call.operands[2].shape();
  Dimensions sizes = window_sizes(dims, operand.rank(), updates);
  Tensor clamped = clamp_indices(call.operands[1], view(dims), operand, sizes);
  Tensor windows = gather(cotangent, clamped,
                          {.offset_dims = dims.update_window_dims,
                           .collapsed_slice_dims = dims.inserted_window_dims,
                           .operand_batching_dims = dims.input_batching_dims,
                           .start_indices_batching_dims = dims.scatter_indices_batching_dims,
                           .start_index_map = dims.scatter_dims_to_operand_dims,
                           .index_vector_dim = dims.index_vector_dim},
                          sizes, dims.indices_are_sorted);
  // What was dropped has no influence.
  out[2] = where(fits(call.operands[1], clamped, dims, updates), windows, 0);
}

// As in gather: larger windows where all members share the indices, else operand, indices and
// updates walk along together.
void batch_scatter_add(const BatchCall& call, std::span<Tensor> results) {
  ScatterAddAttributes dims = call.as<ScatterAddAttributes>();
  std::vector<Tensor> operands{batched_operand(call, 0), call.operands[1],
                               batched_operand(call, 2)};
  for (Dimensions* list : {&dims.update_window_dims, &dims.inserted_window_dims,
                           &dims.input_batching_dims, &dims.scatter_dims_to_operand_dims})
    *list = behind_batch(*list);
  if (call.batched[1]) {
    dims.input_batching_dims = with_entry(0, dims.input_batching_dims);
    dims.scatter_indices_batching_dims = with_batch(0, dims.scatter_indices_batching_dims);
    ++dims.index_vector_dim;
    dims.indices_are_sorted = false;
  } else {
    dims.update_window_dims = with_entry(0, dims.update_window_dims);
  }
  record_batched(call, make_attributes(std::move(dims)), operands, results);
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
    .doc =
        "The operand with windows of updates added at given indices; a window that does not fit is "
        "dropped.",
    .example =
        "scatter_add(x, iota(DType::i32, {2}, 0), y, {.update_window_dims = {1}, "
        ".inserted_window_dims = {0}, .scatter_dims_to_operand_dims = {0}, "
        ".index_vector_dim = 1})",
    .infer = infer_scatter_add,
    .sharding_rule = scatter_add_rule,
    .emit = emit,
    .vjp = scatter_add_vjp,
    .batch = batch_scatter_add,
    .samples = scatter_add_samples,
    .parse_attributes = parse_attributes<ScatterAddAttributes>,
};

Tensor scatter_add(In operand, In indices, In updates, ScatterDimensions dimensions,
                   bool indices_are_sorted, bool unique_indices) {
  Tensor to = operand_tensor(scatter_add_op, operand);
  Tensor at = operand_tensor(scatter_add_op, indices);
  Tensor values = operand_tensor(scatter_add_op, updates);
  return record(
      scatter_add_op,
      make_attributes(ScatterAddAttributes{
          std::move(dimensions.update_window_dims), std::move(dimensions.inserted_window_dims),
          std::move(dimensions.input_batching_dims),
          std::move(dimensions.scatter_indices_batching_dims),
          std::move(dimensions.scatter_dims_to_operand_dims), dimensions.index_vector_dim,
          indices_are_sorted, unique_indices}),
      {&to, &at, &values}, operand.where);
}

}  // namespace meshard

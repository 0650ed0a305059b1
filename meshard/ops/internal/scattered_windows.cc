// Tested in meshard/ops/scatter_test.cc.
#include "meshard/ops/internal/scattered_windows.h"

#include <algorithm>

#include "meshard/ops/astype.h"
#include "meshard/ops/broadcast_in_dim.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/gather.h"
#include "meshard/ops/internal/index_dimensions.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/where.h"

namespace meshard::internal {
namespace {

// The window size in each of the operand's dimensions.
Dimensions window_sizes(const ScatterAttributes& dims, int operand_rank, const Shape& updates) {
  Dimensions sizes(static_cast<std::size_t>(operand_rank), 1);
  Dimensions window = window_operand_dimensions(dims, operand_rank);
  for (std::size_t i = 0; i < window.size(); ++i)
    sizes[static_cast<std::size_t>(window[i])] = updates[dims.update_window_dims[i]];
  return sizes;
}

// True for each update whose window fits inside; of the updates' shape.
Tensor fits(const Tensor& indices, const Tensor& clamped, const ScatterAttributes& dims,
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

}  // namespace

void infer_scatter(const OpCall& call, ResultTypes& results) {
  const auto& dims = call.as<ScatterAttributes>();
  const TensorType &operand = call.operand(0), &indices = call.operand(1),
                   &updates = call.operand(2);
  if (updates.dtype != operand.dtype)
    call.fail("operand and updates must have the same dtype, not ", operand, " and ", updates);
  check_index_dimensions(call, dims, operand, indices, updates.rank());
  Dimensions batch = batch_index_dimensions(dims, indices.rank());
  if (static_cast<std::size_t>(updates.rank()) != batch.size() + dims.update_window_dims.size())
    call.fail("updates ", updates, " have rank ", updates.rank(), ": ", batch.size(),
              " dimensions of indices ", indices, " and ", dims.update_window_dims.size(),
              " of windows are needed");
  Dimensions window = window_operand_dimensions(dims, operand.rank());
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

ShardingRule scatter_rule(const OpCall& call, FactorKind of_updates) {
  return indexing_rule(call.as<ScatterAttributes>(), call.operand(0).shape, call.operand(1).shape,
                       call.operand(2).shape, /*scatter=*/true, of_updates);
}

void emit_scatter(const OpCall& call, OpEmission& out, std::string_view mnemonic) {
  const auto& dims = call.as<ScatterAttributes>();
  TensorType scalar{call.operand(0).dtype, {}};
  stablehlo::Value a = out.writer.block_argument(), b = out.writer.block_argument();
  TensorType index_type = written_index_type(call.operand(1));
  stablehlo::Value indices = written_indices(out, index_type);
  out.writer
      .op("stablehlo.scatter", out.results,
          {out.operands[0], {indices, index_type}, out.operands[2]}, out.location)
      .dimension_numbers("scatter_dimension_numbers", dims)
      .boolean("indices_are_sorted", dims.indices_are_sorted)
      .boolean("unique_indices", dims.unique_indices)
      .region({{a, scalar}, {b, scalar}},
              [&] {
                if (mnemonic.empty()) return out.writer.terminate({{b, scalar}});
                stablehlo::Value both = out.writer.temporary();
                out.writer.elementwise(mnemonic, both, {a, b}, scalar);
                out.writer.terminate({{both, scalar}});
              })
      .done();
}

Tensor record_scatter(const OpDef& op, const In& operand, const In& indices, const In& updates,
                      ScatterDimensions dimensions, bool indices_are_sorted, bool unique_indices) {
  Tensor to = operand_tensor(op, operand);
  Tensor at = operand_tensor(op, indices);
  Tensor values = operand_tensor(op, updates);
  return record(
      op,
      make_attributes(ScatterAttributes{std::move(dimensions), indices_are_sorted, unique_indices}),
      {&to, &at, &values}, operand.where);
}

// As in gather: larger windows if all members share the indices; otherwise the batch is a batching
// dimension of operand, indices and updates.
void batch_scatter(const BatchCall& call, std::span<Tensor> results) {
  ScatterAttributes dims = call.as<ScatterAttributes>();
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

Tensor scattered_windows(const Tensor& x, const VjpCall& call) {
  const auto& dims = call.as<ScatterAttributes>();
  const Shape& operand = call.operands[0].shape();
  const Shape& updates = call.operands[2].shape();
  Dimensions sizes = window_sizes(dims, operand.rank(), updates);
  Tensor clamped = clamp_indices(call.operands[1], dims, operand, sizes);
  Tensor windows = gather(x, clamped,
                          {.offset_dims = dims.update_window_dims,
                           .collapsed_slice_dims = dims.inserted_window_dims,
                           .operand_batching_dims = dims.input_batching_dims,
                           .start_indices_batching_dims = dims.scatter_indices_batching_dims,
                           .start_index_map = dims.scatter_dims_to_operand_dims,
                           .index_vector_dim = dims.index_vector_dim},
                          sizes, dims.indices_are_sorted);
  // Dropped updates have no influence.
  return where(fits(call.operands[1], clamped, dims, updates), windows, 0);
}

}  // namespace meshard::internal

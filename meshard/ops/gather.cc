#include "meshard/ops/gather.h"

#include <algorithm>

#include "meshard/ops/definition/define.h"
#include "meshard/ops/internal/index_dimensions.h"
#include "meshard/ops/scatter.h"

namespace meshard {
using namespace internal;
namespace {

void infer_gather(const OpCall& call, ResultTypes& results) {
  const auto& dims = call.as<GatherAttributes>();
  const TensorType &operand = call.operand(0), &indices = call.operand(1);
  int index_rank = indices.rank() - (dims.index_vector_dim < indices.rank() ? 1 : 0);
  int rank = index_rank + static_cast<int>(dims.offset_dims.size());
  check_index_dimensions(call, dims, operand, indices, rank);
  check_one_each(call, "slice_sizes", dims.slice_sizes.size(), operand);
  for (int d = 0; d < operand.rank(); ++d) {
    std::int64_t size = dims.slice_sizes[static_cast<std::size_t>(d)];
    if (size < 0 || size > operand.shape[d])
      call.fail("slice size ", size, " of dimension ", d, " is outside 0..", operand.shape[d],
                " of ", operand);
  }
  for (const Dimensions* dropped : {&dims.collapsed_slice_dims, &dims.operand_batching_dims})
    for (std::int64_t d : *dropped)
      if (dims.slice_sizes[static_cast<std::size_t>(d)] > 1)
        call.fail("slice size ", dims.slice_sizes[static_cast<std::size_t>(d)],
                  " of the collapsed or batching dimension ", d, " is above 1");
  Dimensions window = window_operand_dimensions(dims, operand.rank());
  Dimensions batch = batch_index_dimensions(dims, indices.rank());
  Dimensions sizes;
  std::size_t next_window = 0, next_batch = 0;
  for (int d = 0; d < rank; ++d) {
    bool inside = next_window < dims.offset_dims.size() && dims.offset_dims[next_window] == d;
    sizes.push_back(inside ? dims.slice_sizes[static_cast<std::size_t>(window[next_window++])]
                           : indices.shape[batch[next_batch++]]);
  }
  results.push_back({operand.dtype, Shape(std::move(sizes))});
}

ShardingRule gather_rule(const OpCall& call) {
  return indexing_rule(call.as<GatherAttributes>(), call.operand(0).shape, call.operand(1).shape,
                       call.result().shape, /*scatter=*/false);
}

// Explicit axes: if the indices are split, it is ambiguous which devices look up which slices,
// except along batching dimensions, which match the operand's.
std::string gather_conflict(const OpCall& call, std::span<const Sharding* const> operands) {
  if (!operands[1]) return {};
  const Dimensions& batch = call.as<GatherAttributes>().start_indices_batching_dims;
  for (std::size_t d = 0; d < operands[1]->rank(); ++d)
    if (operands[1]->num_tiles(d) > 1 && !holds(batch, static_cast<std::int64_t>(d)))
      return cat(to_string(operands[1]->axes(d)), " splits dimension ", d, " of the indices");
  return {};
}

void emit(const OpCall& call, OpEmission& out) {
  const auto& dims = call.as<GatherAttributes>();
  TensorType index_type = written_index_type(call.operand(1), out.quirks);
  stablehlo::Value indices = written_indices(out, index_type);
  out.writer
      .op("stablehlo.gather", out.results, {out.operands[0], {indices, index_type}}, out.location)
      .dimension_numbers("dimension_numbers", dims)
      .i64_array("slice_sizes", dims.slice_sizes)
      .boolean("indices_are_sorted", dims.indices_are_sorted)
      .done();
}

// The indices are clamped first: a scatter drops windows that do not fit, where gather clamps them.
void gather_vjp(const VjpCall& call, std::span<Tensor> out) {
  if (!call.needs(0)) return;
  const auto& dims = call.as<GatherAttributes>();
  const TensorType& operand = call.operands[0].type();
  Tensor indices = clamp_indices(call.operands[1], dims, operand.shape, dims.slice_sizes);
  out[0] = scatter_add(filled(operand, 0), indices, call.cotangents[0], scatter_of(dims),
                       dims.indices_are_sorted);
}

// A batched operand gets a larger window, batched indices are more indices; if both are batched,
// the batch is a batching dimension.
void batch_gather(const BatchCall& call, std::span<Tensor> results) {
  GatherAttributes dims = call.as<GatherAttributes>();
  dims.offset_dims = behind_batch(dims.offset_dims);
  if (call.batched[0]) {
    for (Dimensions* list :
         {&dims.collapsed_slice_dims, &dims.operand_batching_dims, &dims.start_index_map})
      *list = behind_batch(*list);
    dims.slice_sizes = with_entry(call.size, dims.slice_sizes);
  }
  if (call.batched[1]) {
    dims.start_indices_batching_dims = behind_batch(dims.start_indices_batching_dims);
    ++dims.index_vector_dim;
    dims.indices_are_sorted = false;
  } else {
    dims.offset_dims = with_entry(0, dims.offset_dims);
  }
  if (call.batched[0] && call.batched[1]) {
    dims.operand_batching_dims = with_entry(0, dims.operand_batching_dims);
    dims.start_indices_batching_dims = with_entry(0, dims.start_indices_batching_dims);
    dims.slice_sizes[0] = std::min<std::int64_t>(call.size, 1);
  }
  record_batched(call, make_attributes(std::move(dims)), call.operands, results);
}

std::unique_ptr<const Attributes> read_gather(const OpText& text) {
  std::string_view numbers = text.attribute({"dimension_numbers"});
  return make_attributes(GatherAttributes{
      {list_in(numbers, "offset_dims"), list_in(numbers, "collapsed_slice_dims"),
       list_in(numbers, "operand_batching_dims"), list_in(numbers, "start_indices_batching_dims"),
       list_in(numbers, "start_index_map"), number_in(numbers, "index_vector_dim")},
      text.list({"slice_sizes"})});
}

}  // namespace

extern constinit const OpDef gather_op = {
    .name = "gather",
    .operands = "operand, start_indices",
    .example =
        "gather(x, iota(DType::i32, {2}, 0), {.offset_dims = {1}, .collapsed_slice_dims = {0}, "
        ".start_index_map = {0}, .index_vector_dim = 1}, {1, 3})",
    .infer = infer_gather,
    .sharding_rule = gather_rule,
    .emit = emit,
    .read = {.mnemonic = "stablehlo.gather", .attributes = read_gather, .dtypes_as_written = true},
    .vjp = gather_vjp,
    .batch = batch_gather,
    .sharding_conflict = gather_conflict,
    .parse_attributes = parse_attributes<GatherAttributes>,
};

Tensor gather(In operand, In start_indices, GatherDimensions dimensions, Dimensions slice_sizes,
              bool indices_are_sorted) {
  Tensor from = operand_tensor(gather_op, operand);
  Tensor indices = operand_tensor(gather_op, start_indices);
  return record(gather_op,
                make_attributes(GatherAttributes{std::move(dimensions), std::move(slice_sizes),
                                                 indices_are_sorted}),
                {&from, &indices}, operand.where);
}

}  // namespace meshard

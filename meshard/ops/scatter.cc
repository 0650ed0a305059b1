#include "meshard/ops/scatter.h"

#include <algorithm>
#include <limits>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/internal/element_writer.h"
#include "meshard/ops/internal/index_dimensions.h"
#include "meshard/ops/internal/single_row.h"

namespace meshard {
using namespace internal;
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
    if (!holds(dims.update_window_dims, d)) to.push_back(d);
  return broadcast_in_dim(same, updates, std::move(to));
}

// Infers a scatter: one result, of the operand's type.
// @error dtypes, ranks or sizes that do not match.
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

// The sharding rule of a scatter. `of_updates` is the kind of the factors that the updates and the
// indices share.
template <FactorKind of_updates>
ShardingRule scatter_rule(const OpCall& call) {
  return indexing_rule(call.as<ScatterAttributes>(), call.operand(0).shape, call.operand(1).shape,
                       call.operand(2).shape, /*scatter=*/true, of_updates);
}

// Writes a scatter that combines an element and its update by the binary op `mnemonic`; without
// one, the update replaces the element.
template <const char* mnemonic = nullptr>
void emit_scatter(const OpCall& call, OpEmission& out) {
  const auto& dims = call.as<ScatterAttributes>();
  TensorType index_type = written_index_type(call.operand(1), out.quirks);
  stablehlo::Value indices = written_indices(out, index_type);
  stablehlo::OpWriter op =
      out.writer.op("stablehlo.scatter", out.results,
                    {out.operands[0], {indices, index_type}, out.operands[2]}, out.location);
  op.dimension_numbers("scatter_dimension_numbers", dims)
      .boolean("indices_are_sorted", dims.indices_are_sorted)
      .boolean("unique_indices", dims.unique_indices);
  DType dtype = call.operand(0).dtype;
  if constexpr (mnemonic != nullptr) {
    write_reducer(op, out, mnemonic, dtype).done();
  } else {
    TensorType scalar{dtype, {}};
    stablehlo::Value a = out.writer.block_argument(), b = out.writer.block_argument();
    op.region({{a, scalar}, {b, scalar}}, [&] { out.writer.terminate({{b, scalar}}); }).done();
  }
}

// Records a scatter.
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

// The batch rule of a scatter.
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

// Gathers the elements of `x`, of the operand's shape, at which the updates of a scatter are
// written. The result has the updates' shape; it is 0 where a window does not fit inside.
Tensor scattered_windows(const Tensor& x, const VjpCall& call) {
  const auto& dims = call.as<ScatterAttributes>();
  const Shape& operand = call.operands[0].shape();
  const Shape& updates = call.operands[2].shape();
  Dimensions sizes = window_sizes(dims, operand.rank(), updates);
  Tensor clamped = clamp_indices(call.operands[1], dims, operand, sizes);
  Tensor windows = gather(x, clamped, gather_of(dims), sizes, dims.indices_are_sorted);
  // Dropped updates have no influence.
  return where(fits(call.operands[1], clamped, dims, updates), windows, 0);
}

void scatter_add_vjp(const VjpCall& call, std::span<Tensor> out) {
  if (call.needs(0)) out[0] = call.cotangents[0];
  if (call.needs(2)) out[2] = scattered_windows(call.cotangents[0], call);
}

// Reads a scatter whose body adds, or one whose body does not: only the shards of the former can be
// combined, by summing.
std::unique_ptr<const Attributes> read_scatter(const OpText& text, bool adds) {
  bool text_adds = false;
  for (const stablehlo::ModuleRegion& region : text.op.regions)
    for (const stablehlo::ModuleOp& inside : region.ops)
      text_adds = text_adds || inside.mnemonic == "stablehlo.add";
  if (text_adds != adds) return nullptr;
  std::string_view numbers = text.attribute({"scatter_dimension_numbers"});
  return make_attributes(ScatterAttributes{
      {list_in(numbers, "update_window_dims"), list_in(numbers, "inserted_window_dims"),
       list_in(numbers, "input_batching_dims"), list_in(numbers, "scatter_indices_batching_dims"),
       list_in(numbers, "scatter_dims_to_operand_dims"), number_in(numbers, "index_vector_dim")}});
}

using Scatter = Tensor (*)(In, In, In, ScatterDimensions, bool, bool);

// Scatters other tensors at the positions of `call`.
Tensor again(Scatter op, const VjpCall& call, const Tensor& operand, const Tensor& updates) {
  const auto& dims = call.as<ScatterAttributes>();
  return op(operand, call.operands[1], updates, dims, dims.indices_are_sorted, dims.unique_indices);
}

void scatter_set_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor &cotangent = call.cotangents[0], &updates = call.operands[2];
  if (call.needs(0)) out[0] = again(scatter_set, call, cotangent, filled(updates.type(), 0));
  if (!call.needs(2)) return;
  out[2] = scattered_windows(cotangent, call);
  if (call.as<ScatterAttributes>().unique_indices) return;
  // Scatters the numbers of the updates to find which of them remain.
  std::int64_t count = updates.shape().size();
  DType dtype = count <= std::numeric_limits<std::int32_t>::max() ? DType::i32 : DType::i64;
  Tensor numbers = reshape(iota(dtype, {count}, 0), updates.shape());
  Tensor none_yet = filled({dtype, call.operands[0].shape()}, 0);
  Tensor left = again(scatter_set, call, none_yet, numbers);
  out[2] = where(equal(scattered_windows(left, call), numbers), out[2], 0);
}

void scatter_multiply_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor &cotangent = call.cotangents[0], &operand = call.operands[0],
               &updates = call.operands[2];
  if (call.needs(0)) out[0] = again(scatter_multiply, call, cotangent, updates);
  if (!call.needs(2)) return;
  if (call.as<ScatterAttributes>().unique_indices) {
    out[2] = scattered_windows(multiply(cotangent, operand), call);
    return;
  }
  // The product of the other factors: the product of all but the zeros, divided by the update, or 0
  // if another update is zero.
  Tensor is_zero = equal(updates, 0);
  Tensor divisor = where(is_zero, 1, updates);
  Tensor product = again(scatter_multiply, call, multiply(cotangent, operand), divisor);
  Tensor zero = astype(is_zero, operand.dtype());
  Tensor zeros = again(scatter_add, call, filled(operand.type(), 0), zero);
  Tensor other_zeros = subtract(scattered_windows(zeros, call), zero);
  out[2] = where(equal(other_zeros, 0), divide(scattered_windows(product, call), divisor), 0);
}

// Divides the cotangent among all elements that are equal to the result.
void scatter_extreme_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor &operand = call.operands[0], &updates = call.operands[2], &result = call.results[0];
  Tensor stayed = astype(equal(operand, result), operand.dtype());
  Tensor chosen = astype(equal(updates, scattered_windows(result, call)), operand.dtype());
  Tensor share = divide(call.cotangents[0], again(scatter_add, call, stayed, chosen));
  if (call.needs(0)) out[0] = multiply(stayed, share);
  if (call.needs(2)) out[2] = multiply(chosen, scattered_windows(share, call));
}

void emit_scatter_set(const OpCall& call, OpEmission& out) {
  if (out.quirks.has(Quirk::kSingleWindows) && !out.partitioned && has_single_window(call))
    return emit_window_twice(call, out, emit_scatter<>);
  emit_scatter<>(call, out);
}

void infer_number_scatter(const OpCall& call, ResultTypes& results) {
  if (call.operand(0).dtype == DType::bool_)
    call.fail("takes integers or floats, not ", call.operand(0));
  infer_scatter(call, results);
}

// `infer` is an argument because under sanitizers comparing function addresses is not a constant
// expression.
template <FactorKind of_updates = FactorKind::kNeedReplication>
constexpr OpDef scatter(std::string_view name, std::string_view doc, std::string_view example,
                        void (*infer)(const OpCall&, ResultTypes&),
                        void (*emit)(const OpCall&, OpEmission&),
                        void (*vjp)(const VjpCall&, std::span<Tensor>), OpReading read = {}) {
  return {
      .name = name,
      .operands = "operand, indices, updates",
      .doc = doc,
      .example = example,
      .infer = infer,
      .sharding_rule = scatter_rule<of_updates>,
      .emit = emit,
      .read = read,
      .vjp = vjp,
      .batch = batch_scatter,
      .parse_attributes = parse_attributes<ScatterAttributes>,
  };
}

}  // namespace

// Only the shards of scatter_add can be combined, by summing.
extern constinit const OpDef scatter_add_op = scatter<FactorKind::kReduction>(
    "scatter_add", {},
    "scatter_add(x, iota(DType::i32, {2}, 0), y, {.update_window_dims = {1}, "
    ".inserted_window_dims = {0}, .scatter_dims_to_operand_dims = {0}, .index_vector_dim = 1})",
    infer_number_scatter, emit_scatter<kAdd>, scatter_add_vjp,
    {.mnemonic = "stablehlo.scatter",
     .attributes = [](const OpText& text) { return read_scatter(text, true); },
     .dtypes_as_written = true});
extern constinit const OpDef scatter_set_op = scatter(
    "scatter_set", "The operand with its elements at given indices replaced by windows of updates.",
    "scatter_set(x, iota(DType::i32, {2}, 0), y, {.update_window_dims = {1}, .inserted_window_dims "
    "= {0}, "
    ".scatter_dims_to_operand_dims = {0}, .index_vector_dim = 1})",
    infer_scatter, emit_scatter_set, scatter_set_vjp,
    // Also for the scatters that no op has, such as those that divide.
    {.mnemonic = "stablehlo.scatter",
     .attributes = [](const OpText& text) { return read_scatter(text, false); },
     .dtypes_as_written = true});
extern constinit const OpDef scatter_multiply_op =
    scatter("scatter_multiply",
            "The operand with its elements at given indices multiplied by windows of updates.",
            "scatter_multiply(x, iota(DType::i32, {2}, 0), y, {.update_window_dims = {1}, "
            ".inserted_window_dims = {0}, "
            ".scatter_dims_to_operand_dims = {0}, .index_vector_dim = 1})",
            infer_number_scatter, emit_scatter<kMultiply>, scatter_multiply_vjp);
extern constinit const OpDef scatter_min_op = scatter(
    "scatter_min",
    "The operand with the smaller of its elements and windows of updates at given indices.",
    "scatter_min(x, iota(DType::i32, {2}, 0), y, {.update_window_dims = {1}, .inserted_window_dims "
    "= {0}, "
    ".scatter_dims_to_operand_dims = {0}, .index_vector_dim = 1})",
    infer_number_scatter, emit_keeping_nans<NanEnd::kLeast, emit_scatter<kMinimum>>,
    scatter_extreme_vjp);
extern constinit const OpDef scatter_max_op = scatter(
    "scatter_max",
    "The operand with the larger of its elements and windows of updates at given indices.",
    "scatter_max(x, iota(DType::i32, {2}, 0), y, {.update_window_dims = {1}, .inserted_window_dims "
    "= {0}, "
    ".scatter_dims_to_operand_dims = {0}, .index_vector_dim = 1})",
    infer_number_scatter, emit_keeping_nans<NanEnd::kGreatest, emit_scatter<kMaximum>>,
    scatter_extreme_vjp);

Tensor scatter_add(In operand, In indices, In updates, ScatterDimensions dimensions,
                   bool indices_are_sorted, bool unique_indices) {
  return record_scatter(scatter_add_op, operand, indices, updates, std::move(dimensions),
                        indices_are_sorted, unique_indices);
}
Tensor scatter_set(In operand, In indices, In updates, ScatterDimensions dimensions,
                   bool indices_are_sorted, bool unique_indices) {
  return record_scatter(scatter_set_op, operand, indices, updates, std::move(dimensions),
                        indices_are_sorted, unique_indices);
}
Tensor scatter_multiply(In operand, In indices, In updates, ScatterDimensions dimensions,
                        bool indices_are_sorted, bool unique_indices) {
  return record_scatter(scatter_multiply_op, operand, indices, updates, std::move(dimensions),
                        indices_are_sorted, unique_indices);
}
Tensor scatter_min(In operand, In indices, In updates, ScatterDimensions dimensions,
                   bool indices_are_sorted, bool unique_indices) {
  return record_scatter(scatter_min_op, operand, indices, updates, std::move(dimensions),
                        indices_are_sorted, unique_indices);
}
Tensor scatter_max(In operand, In indices, In updates, ScatterDimensions dimensions,
                   bool indices_are_sorted, bool unique_indices) {
  return record_scatter(scatter_max_op, operand, indices, updates, std::move(dimensions),
                        indices_are_sorted, unique_indices);
}

}  // namespace meshard

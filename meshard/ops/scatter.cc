#include "meshard/ops/scatter.h"

#include <limits>

#include "meshard/ops/astype.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/internal/ordered_bits.h"
#include "meshard/ops/internal/scattered_windows.h"
#include "meshard/ops/internal/single_row.h"
#include "meshard/ops/iota.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/subtract.h"
#include "meshard/ops/where.h"

namespace meshard {
using namespace internal;
namespace {

using Scatter = Tensor (*)(In, In, In, ScatterDimensions, bool, bool);

// Scatters other tensors at the positions of `call`.
Tensor again(Scatter op, const VjpCall& call, const Tensor& operand, const Tensor& updates) {
  const auto& dims = call.as<ScatterAttributes>();
  return op(operand, call.operands[1], updates,
            {.update_window_dims = dims.update_window_dims,
             .inserted_window_dims = dims.inserted_window_dims,
             .input_batching_dims = dims.input_batching_dims,
             .scatter_indices_batching_dims = dims.scatter_indices_batching_dims,
             .scatter_dims_to_operand_dims = dims.scatter_dims_to_operand_dims,
             .index_vector_dim = dims.index_vector_dim},
            dims.indices_are_sorted, dims.unique_indices);
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

void emit_replacement(const OpCall& call, OpEmission& out) { emit_scatter(call, out, ""); }
void emit_scatter_set(const OpCall& call, OpEmission& out) {
  if (out.for_xla_cpu && !out.partitioned && has_single_window(call))
    return emit_window_twice(call, out, emit_replacement);
  emit_replacement(call, out);
}
void emit_scatter_max(const OpCall& call, OpEmission& out) {
  if (out.partitioned && is_floating(call.result().dtype))
    return emit_in_order_of_bits(call, out, NanEnd::kGreatest, emit_scatter_max);
  emit_scatter(call, out, "stablehlo.maximum");
}
void emit_scatter_min(const OpCall& call, OpEmission& out) {
  if (out.partitioned && is_floating(call.result().dtype))
    return emit_in_order_of_bits(call, out, NanEnd::kLeast, emit_scatter_min);
  emit_scatter(call, out, "stablehlo.minimum");
}

std::vector<OpSample> samples_of(SampleSource& source, Scatter op) {
  auto by = [op](ScatterDimensions dims, bool unique = false) {
    return [=](std::span<const Tensor> x) { return op(x[0], x[1], x[2], dims, false, unique); };
  };
  DType f32 = DType::f32, f64 = DType::f64, i32 = DType::i32;
  // All elements are distinct: the derivative of the smallest and the largest jumps where they are
  // equal.
  auto of = [&](DType dtype, Shape operand, HostArray indices, Shape updates) {
    std::vector<double> all =
        source.distinct(DType::f64, {operand.size() + updates.size()}, 1).to_vector<double>();
    auto middle = all.begin() + operand.size();
    double scale = dtype == i32 ? 2 : 0.125;
    for (double& value : all) value *= scale;
    auto array = [&](auto begin, auto end, Shape& shape) {
      return HostArray::from_vector(std::vector<double>(begin, end), std::move(shape))
          .astype(dtype);
    };
    return std::vector<HostArray>{array(all.begin(), middle, operand), std::move(indices),
                                  array(middle, all.end(), updates)};
  };
  ScatterDimensions rows{.update_window_dims = {1},
                         .inserted_window_dims = {0},
                         .scatter_dims_to_operand_dims = {0},
                         .index_vector_dim = 1};
  ScatterDimensions batches{.update_window_dims = {2},
                            .inserted_window_dims = {1},
                            .input_batching_dims = {0},
                            .scatter_indices_batching_dims = {0},
                            .scatter_dims_to_operand_dims = {1},
                            .index_vector_dim = 2};
  HostArray apart = HostArray::from_vector<std::int32_t>({3, 0, 7, 4});
  return {
      {"rows apart", of(f64, {8, 4}, apart, {4, 4}), by(rows, true)},
      {"rows", of(f64, {8, 4}, source.uniform(i32, {12}, 0, 7), {12, 4}), by(rows)},
      {"rows, outside", of(f64, {4, 8}, source.uniform(i32, {8}, -2, 5), {8, 8}), by(rows)},
      {"integers", of(i32, {8, 4}, source.uniform(i32, {4}, 0, 7), {4, 4}), by(rows)},
      {"points", of(f64, {4, 8}, source.uniform(i32, {2, 8}, 0, 3), {8}),
       by({.inserted_window_dims = {0, 1}, .scatter_dims_to_operand_dims = {1, 0}})},
      {"batches", of(f64, {4, 8, 2}, source.uniform(i32, {4, 3, 1}, 0, 7), {4, 3, 2}), by(batches)},
      {"one window of a batch of one",
       of(f64, {1, 8, 2}, source.uniform(i32, {1, 1, 1}, 0, 7), {1, 1, 2}), by(batches)},
      {"one window", of(f32, {8, 4}, source.uniform(i32, {}, 0, 7), {4}),
       by({.update_window_dims = {0},
           .inserted_window_dims = {0},
           .scatter_dims_to_operand_dims = {0}})},
  };
}

void infer_number_scatter(const OpCall& call, ResultTypes& results) {
  if (call.operand(0).dtype == DType::bool_)
    call.fail("takes integers or floats, not ", call.operand(0));
  infer_scatter(call, results);
}

// `infer` is an argument because under sanitizers comparing function addresses is not a constant
// expression.
template <Scatter op>
constexpr OpDef scatter(std::string_view name, std::string_view doc, std::string_view example,
                        void (*infer)(const OpCall&, ResultTypes&),
                        void (*emit)(const OpCall&, OpEmission&),
                        void (*vjp)(const VjpCall&, std::span<Tensor>)) {
  return {
      .name = name,
      .operands = "operand, indices, updates",
      .doc = doc,
      .example = example,
      .infer = infer,
      // Only the shards of scatter_add can be combined, by summing.
      .sharding_rule =
          [](const OpCall& call) { return scatter_rule(call, FactorKind::kNeedReplication); },
      .emit = emit,
      .vjp = vjp,
      .batch = batch_scatter,
      .samples = [](SampleSource& source) { return samples_of(source, op); },
      .parse_attributes = parse_attributes<ScatterAttributes>,
  };
}

}  // namespace

extern constinit const OpDef scatter_set_op = scatter<scatter_set>(
    "scatter_set", "The operand with its elements at given indices replaced by windows of updates.",
    "scatter_set(x, iota(DType::i32, {2}, 0), y, {.update_window_dims = {1}, .inserted_window_dims "
    "= {0}, "
    ".scatter_dims_to_operand_dims = {0}, .index_vector_dim = 1})",
    infer_scatter, emit_scatter_set, scatter_set_vjp);
extern constinit const OpDef scatter_multiply_op = scatter<scatter_multiply>(
    "scatter_multiply",
    "The operand with its elements at given indices multiplied by windows of updates.",
    "scatter_multiply(x, iota(DType::i32, {2}, 0), y, {.update_window_dims = {1}, "
    ".inserted_window_dims = {0}, "
    ".scatter_dims_to_operand_dims = {0}, .index_vector_dim = 1})",
    infer_number_scatter,
    [](const OpCall& call, OpEmission& out) { emit_scatter(call, out, "stablehlo.multiply"); },
    scatter_multiply_vjp);
extern constinit const OpDef scatter_min_op = scatter<scatter_min>(
    "scatter_min",
    "The operand with the smaller of its elements and windows of updates at given indices.",
    "scatter_min(x, iota(DType::i32, {2}, 0), y, {.update_window_dims = {1}, .inserted_window_dims "
    "= {0}, "
    ".scatter_dims_to_operand_dims = {0}, .index_vector_dim = 1})",
    infer_number_scatter, emit_scatter_min, scatter_extreme_vjp);
extern constinit const OpDef scatter_max_op = scatter<scatter_max>(
    "scatter_max",
    "The operand with the larger of its elements and windows of updates at given indices.",
    "scatter_max(x, iota(DType::i32, {2}, 0), y, {.update_window_dims = {1}, .inserted_window_dims "
    "= {0}, "
    ".scatter_dims_to_operand_dims = {0}, .index_vector_dim = 1})",
    infer_number_scatter, emit_scatter_max, scatter_extreme_vjp);

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

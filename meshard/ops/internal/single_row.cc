#include "meshard/ops/internal/single_row.h"

#include <utility>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/definition/operand.h"

namespace meshard::internal {
namespace {

using stablehlo::Typed;
using SsaValue = stablehlo::Value;

// XLA, xla/service/cpu/cpu_instruction_fusion.cc: kFusionThresholdBytes.
constexpr std::int64_t kFusedVectorBytes = 16 * 1024;

SsaValue reshaped(OpEmission& out, Typed x, const TensorType& type) {
  if (*x.type == type) return x.value;
  SsaValue result = out.writer.temporary();
  out.writer.op("stablehlo.reshape", {{result, type}}, {x}, out.location).done();
  return result;
}

TensorType twice(const TensorType& type) {
  Dimensions sizes{2};
  for (std::int64_t size : type.shape) sizes.push_back(size);
  return {type.dtype, Shape(std::move(sizes))};
}

// Two equal copies of `x`, in a new first dimension.
SsaValue repeated(OpEmission& out, Typed x, const TensorType& type) {
  Dimensions to;
  for (int d = 0; d < x.type->rank(); ++d) to.push_back(d + 1);
  SsaValue result = out.writer.temporary();
  out.writer.op("stablehlo.broadcast_in_dim", {{result, type}}, {x}, out.location)
      .i64_array("broadcast_dimensions", to)
      .done();
  return result;
}

// `[2, ...]` to its first half `[1, ...]`.
SsaValue first_of_two(OpEmission& out, Typed x, const TensorType& type) {
  Dimensions zeros(static_cast<std::size_t>(type.rank()), 0),
      ones(static_cast<std::size_t>(type.rank()), 1);
  SsaValue result = out.writer.temporary();
  out.writer.op("stablehlo.slice", {{result, type}}, {x}, out.location)
      .i64_array("start_indices", zeros)
      .i64_array("limit_indices", type.shape.sizes())
      .i64_array("strides", ones)
      .done();
  return result;
}

// One operand of a product without its dimensions of size 1.
struct Factor {
  TensorType type;
  Dimensions batch, contracting;

  Factor(const TensorType& full, const Dimensions& full_batch, const Dimensions& full_contracting) {
    Dimensions sizes, place(static_cast<std::size_t>(full.rank()), -1);
    for (int d = 0; d < full.rank(); ++d) {
      if (full.shape[d] == 1) continue;
      place[static_cast<std::size_t>(d)] = static_cast<std::int64_t>(sizes.size());
      sizes.push_back(full.shape[d]);
    }
    type = {full.dtype, Shape(std::move(sizes))};
    auto keep = [&](const Dimensions& from, Dimensions& to) {
      for (std::int64_t d : from)
        if (std::int64_t at = place[static_cast<std::size_t>(d)]; at >= 0) to.push_back(at);
    };
    keep(full_batch, batch);
    keep(full_contracting, contracting);
  }

  std::size_t free() const {
    return static_cast<std::size_t>(type.rank()) - batch.size() - contracting.size();
  }
};

// Whether XLA computes vector times array element by element.
bool is_fused(const Factor& vector, const Factor& array) {
  return vector.batch.empty() && vector.free() == 0 && array.free() > 0 && array.type.rank() > 2 &&
         vector.type.bytes() < kFusedVectorBytes;
}

}  // namespace

bool emit_single_row_product(const OpCall& call, OpEmission& out) {
  const auto& dims = call.as<DotGeneralAttributes>();
  if (!is_floating(call.operand(0).dtype) || call.result().size() == 0) return false;
  Factor left(call.operand(0), dims.lhs_batch, dims.lhs_contracting),
      right(call.operand(1), dims.rhs_batch, dims.rhs_contracting);
  bool left_is_row = is_fused(left, right), has_row = left_is_row || is_fused(right, left);
  if (!has_row && left.batch.size() == dims.lhs_batch.size()) return false;

  SsaValue a = reshaped(out, out.operands[0], left.type);
  SsaValue b = reshaped(out, out.operands[1], right.type);
  DotGeneralAttributes written;
  written.result_dtype = dims.result_dtype;
  TensorType whole{call.result().dtype, {}};
  Dimensions sizes;
  for (std::int64_t size : call.result().shape)
    if (size != 1) sizes.push_back(size);
  whole.shape = Shape(std::move(sizes));
  SsaValue product = out.writer.temporary();
  auto write = [&](const Factor& first, SsaValue x, const TensorType& x_type, const Factor& second,
                   SsaValue y, const TensorType& type) {
    written.lhs_batch = first.batch;
    written.rhs_batch = second.batch;
    written.rhs_contracting = second.contracting;
    out.writer
        .op("stablehlo.dot_general", {{product, type}}, {{x, x_type}, {y, second.type}},
            out.location)
        .dimension_numbers("dot_dimension_numbers", written)
        .done();
  };
  if (has_row) {
    // The row has no free dimensions, so the result is the same with the operands exchanged.
    const Factor &row = left_is_row ? left : right, &array = left_is_row ? right : left;
    TensorType rows = twice(row.type), both = twice(whole);
    for (std::int64_t d : row.contracting) written.lhs_contracting.push_back(d + 1);
    write(row, repeated(out, {left_is_row ? a : b, row.type}, rows), rows, array,
          left_is_row ? b : a, both);
    TensorType one{both.dtype, both.shape.with(0, 1)};
    product = first_of_two(out, {product, both}, one);
    whole = std::move(one);
  } else {
    written.lhs_contracting = left.contracting;
    write(left, a, left.type, right, b, whole);
  }
  out.writer.op("stablehlo.reshape", out.results, {{product, whole}}, out.location).done();
  return true;
}

bool has_single_window(const OpCall& call) {
  const auto& dims = call.as<ScatterAttributes>();
  const Shape& updates = call.operand(2).shape;
  for (int d = 0; d < updates.rank(); ++d)
    if (updates[d] != 1 && !holds(dims.update_window_dims, d)) return false;
  return true;
}

void emit_window_twice(const OpCall& call, OpEmission& out,
                       void (*emit)(const OpCall& call, OpEmission& out)) {
  ScatterAttributes dims = call.as<ScatterAttributes>();
  dims.unique_indices = false;
  for (Dimensions* list : {&dims.update_window_dims, &dims.scatter_indices_batching_dims})
    for (std::int64_t& d : *list) ++d;
  ++dims.index_vector_dim;
  const std::unique_ptr<const Attributes> attributes = make_attributes(std::move(dims));
  TensorType indices = twice(call.operand(1)), updates = twice(call.operand(2));
  const Typed operands[] = {out.operands[0],
                            {repeated(out, out.operands[1], indices), indices},
                            {repeated(out, out.operands[2], updates), updates}};
  OpCall inner = call;
  inner.attributes = attributes.get();
  inner.operands[1] = &indices;
  inner.operands[2] = &updates;
  OpEmission within = out;
  within.operands = operands;
  emit(inner, within);
}

}  // namespace meshard::internal

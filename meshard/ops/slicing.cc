#include "meshard/ops/slicing.h"

#include <algorithm>

#include "meshard/graph/explicit_sharding.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/internal/index_dimensions.h"
#include "meshard/ops/internal/window.h"
#include "meshard/ops/rolling/roll_layers.h"

namespace meshard {
using namespace internal;
namespace {

void infer_slice(const OpCall& call, ResultTypes& results) {
  const auto& [start, stop, stride] = call.as<SliceAttributes>();
  const TensorType& operand = call.operand(0);
  check_one_each(call, "start", start.size(), operand);
  check_one_each(call, "stop", stop.size(), operand);
  check_one_each(call, "stride", stride.size(), operand);
  Dimensions sizes;
  for (std::size_t d = 0; d < start.size(); ++d) {
    std::int64_t size = operand.shape[static_cast<std::int64_t>(d)];
    if (start[d] < 0 || start[d] > stop[d] || stop[d] > size)
      call.fail("range ", start[d], ":", stop[d], " is not inside dimension ", d, " = ", size,
                " of ", operand);
    if (stride[d] < 1) call.fail("stride of dimension ", d, " is ", stride[d], ", not 1 or more");
    sizes.push_back((stop[d] - start[d] + stride[d] - 1) / stride[d]);
  }
  results.push_back({operand.dtype, Shape(std::move(sizes))});
}

ShardingRule slice_rule(const OpCall& call) {
  ShardingRuleBuilder builder;
  BoxFactors factors = box_factors(builder, call.operand(0).shape, call.result().shape);
  return builder.operand(std::move(factors.whole)).result(std::move(factors.box)).build();
}

// Pads the cotangents back to the positions of their elements, with zeros between and around.
void slice_vjp(const VjpCall& call, std::span<Tensor> out) {
  const auto& [start, stop, stride] = call.as<SliceAttributes>();
  const Shape& from = call.operands[0].shape();
  const Shape& to = call.cotangents[0].shape();
  Dimensions low = start, high, interior;
  for (int d = 0; d < from.rank(); ++d) {
    auto i = static_cast<std::size_t>(d);
    std::int64_t covered = to[d] == 0 ? 0 : (to[d] - 1) * stride[i] + 1;
    high.push_back(from[d] - start[i] - covered);
    interior.push_back(stride[i] - 1);
  }
  out[0] = pad(call.cotangents[0], 0, std::move(low), std::move(high), std::move(interior));
}

void batch_slice(const BatchCall& call, std::span<Tensor> results) {
  const auto& [start, stop, stride] = call.as<SliceAttributes>();
  SliceAttributes attributes{with_entry(0, start), with_entry(call.size, stop),
                             with_entry(1, stride)};
  record_batched(call, make_attributes(std::move(attributes)), call.operands, results);
}

std::unique_ptr<const Attributes> read_slice(const OpText& text) {
  std::size_t rank = text.rank();
  if (std::string_view ranges = text.attribute({""}); !ranges.empty()) {  // `[0:16:2, 3:4]`
    SliceAttributes read;
    std::size_t at = 0;
    while (at < ranges.size() && read.start.size() < rank) {
      std::size_t comma = std::min(ranges.find(',', at), ranges.size());
      std::vector<std::int64_t> numbers = stablehlo::integers_of(ranges.substr(at, comma - at));
      if (numbers.size() < 2) break;
      read.start.push_back(numbers[0]);
      read.stop.push_back(numbers[1]);
      read.stride.push_back(numbers.size() > 2 ? numbers[2] : 1);
      at = comma + 1;
    }
    return make_attributes(std::move(read));
  }
  return make_attributes(SliceAttributes{text.list({"start_indices"}), text.list({"limit_indices"}),
                                         text.list({"strides"})});
}

}  // namespace

extern constinit const OpDef slice_op = {
    .name = "slice",
    .operands = "x",
    .doc =
        "A slice of the operand, with optional strides; the limits are known when it is recorded.",
    .example = "slice(x, {0, 1}, {2, 3})",
    .infer = infer_slice,
    .sharding_rule = slice_rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          const auto& [start, stop, stride] = call.as<SliceAttributes>();
          out.op("stablehlo.slice")
              .i64_array("start_indices", start)
              .i64_array("limit_indices", stop)
              .i64_array("strides", stride)
              .done();
        },
    .read = {.mnemonic = "stablehlo.slice", .attributes = read_slice},
    .vjp = slice_vjp,
    .batch = batch_slice,
    .parse_attributes = parse_attributes<SliceAttributes>,
    .traits = {.recomputation = Recomputation::kArithmetic},
};

Tensor slice(In x, Dimensions start, Dimensions stop, Dimensions stride) {
  Tensor operand = operand_tensor(slice_op, x);
  if (stride.empty()) stride.assign(static_cast<std::size_t>(operand.shape().rank()), 1);
  return record(
      slice_op,
      make_attributes(SliceAttributes{std::move(start), std::move(stop), std::move(stride)}),
      {&operand}, x.where);
}

namespace {

void infer_dynamic_slice(const OpCall& call, ResultTypes& results) {
  const Dimensions& sizes = call.as<DynamicSliceAttributes>().sizes;
  const TensorType& operand = call.operand(0);
  check_one_each(call, "sizes", sizes.size(), operand);
  check_starts(call, operand, 1);
  for (int d = 0; d < operand.rank(); ++d) {
    std::int64_t size = sizes[static_cast<std::size_t>(d)];
    if (size < 0 || size > operand.shape[d])
      call.fail("size ", size, " of dimension ", d, " is outside 0..", operand.shape[d], " of ",
                operand);
  }
  results.push_back({operand.dtype, Shape(sizes)});
}

ShardingRule dynamic_slice_rule(const OpCall& call) {
  ShardingRuleBuilder builder;
  BoxFactors factors = box_factors(builder, call.operand(0).shape, call.result().shape);
  builder.operand(std::move(factors.whole));
  for (std::size_t i = 1; i < call.operands.size(); ++i) builder.operand({});
  return builder.result(std::move(factors.box)).build();
}

void dynamic_slice_vjp(const VjpCall& call, std::span<Tensor> out) {
  if (!call.needs(0)) return;
  std::vector<In> starts(call.operands.begin() + 1, call.operands.end());
  out[0] = dynamic_update_slice(filled(call.operands[0].type(), 0), call.cotangents[0], starts);
}

// If the members have different starts, the batched op is a gather, which clamps its indices too.
void batch_dynamic_slice(const BatchCall& call, std::span<Tensor> results) {
  const Dimensions& sizes = call.as<DynamicSliceAttributes>().sizes;
  if (!starts_are_batched(call, 1)) {
    results[0] =
        dynamic_slice(call.operands[0], starts_behind_batch(call, 1), with_entry(call.size, sizes));
    return;
  }
  GatherDimensions dims{.index_vector_dim = 1};
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    dims.offset_dims.push_back(static_cast<std::int64_t>(d) + 1);
    dims.start_index_map.push_back(static_cast<std::int64_t>(d) + (call.batched[0] ? 1 : 0));
  }
  if (call.batched[0]) dims.operand_batching_dims = dims.start_indices_batching_dims = {0};
  results[0] =
      gather(call.operands[0], batched_starts(call, 1), std::move(dims),
             call.batched[0] ? with_entry(std::min<std::int64_t>(call.size, 1), sizes) : sizes);
}

}  // namespace

extern constinit const OpDef dynamic_slice_op = {
    .name = "dynamic_slice",
    .operands = "x, starts...",
    .doc =
        "The slice of given sizes that begins at computed indices, which are clamped to the "
        "operand.",
    .example = "dynamic_slice(x, {1, 0}, {1, 2})",
    .infer = infer_dynamic_slice,
    .sharding_rule = dynamic_slice_rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          InlineVector<stablehlo::Typed, 4> operands = with_written_starts(out, 1);
          out.writer
              .op("stablehlo.dynamic_slice", out.results,
                  std::span<const stablehlo::Typed>(operands.data(), operands.size()), out.location)
              .i64_array("slice_sizes", call.as<DynamicSliceAttributes>().sizes)
              .done();
        },
    .read =
        {.mnemonic = "stablehlo.dynamic_slice",
         .attributes =
             [](const OpText& text) {
               return make_attributes(DynamicSliceAttributes{text.list({"sizes", "slice_sizes"})});
             },
         .dtypes_as_written = true},
    .vjp = dynamic_slice_vjp,
    .batch = batch_dynamic_slice,
    .parse_attributes = parse_attributes<DynamicSliceAttributes>,
};

Tensor dynamic_slice(In x, const std::vector<In>& starts, Dimensions sizes) {
  SourceScope line(x.where);
  std::vector<Tensor> operands = start_tensors(dynamic_slice_op, starts);
  operands.insert(operands.begin(), operand_tensor(dynamic_slice_op, x));
  check_numbers(dynamic_slice_op, starts, operands[0].shape(), sizes, x.where);
  return record_all(dynamic_slice_op, make_attributes(DynamicSliceAttributes{std::move(sizes)}),
                    operands, x.where)[0];
}

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
    .read = {.mnemonic = "stablehlo.dynamic_update_slice", .dtypes_as_written = true},
    .vjp = dynamic_update_slice_vjp,
    .batch = batch_dynamic_update_slice,
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
  return record_all(dynamic_update_slice_op, nullptr, operands, x.where)[0];
}

namespace {

constinit thread_local std::uint64_t slices_recorded = 0;

// The slice as a part of the stack: with a first dimension of size 1.
Shape row_of(const Shape& stacked) { return stacked.with(0, 1); }

void infer_layer_slice(const OpCall& call, ResultTypes& results) {
  std::int64_t layer = call.as<LayerSliceAttributes>().layer;
  const TensorType& stacked = call.operand(0);
  if (stacked.rank() == 0) call.fail("x is ", stacked, ": it has no dimension for the layers");
  if (layer < 0 || layer >= stacked.shape[0])
    call.fail("layer ", layer, " is not one of the ", stacked.shape[0], " layers of ", stacked);
  Dimensions sizes(stacked.shape.begin() + 1, stacked.shape.end());
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
  Dimensions starts(row.shape.sizes().size(), 0), limits = call.operand(0).shape.sizes();
  starts[0] = layer;
  limits[0] = layer + 1;
  OpEmission::Typed cut{out.writer.temporary(), row};
  out.writer.op("stablehlo.slice", {cut}, {out.operands[0]}, out.location)
      .i64_array("start_indices", starts)
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
  out[0] = pad_along(row, 0, 0, layer, stacked[0] - 1 - layer);
}

// The layers stay the first dimension of the operand; the batch follows them.
void batch_layer_slice(const BatchCall& call, std::span<Tensor> results) {
  Dimensions order{1, 0};
  for (int d = 2; d < call.operands[0].rank(); ++d) order.push_back(d);
  results[0] = layer_slice(permute_dims(call.operands[0], std::move(order)),
                           call.as<LayerSliceAttributes>().layer);
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
    .parse_attributes = parse_attributes<LayerSliceAttributes>,
};

Tensor layer_slice(In stacked, std::int64_t layer) {
  ++slices_recorded;
  Tensor operand = operand_tensor(layer_slice_op, stacked);
  return record(layer_slice_op, make_attributes(LayerSliceAttributes{layer}), {&operand},
                stacked.where);
}

std::uint64_t internal::layer_slices_recorded() { return slices_recorded; }

}  // namespace meshard

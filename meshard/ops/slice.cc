#include "meshard/ops/slice.h"

#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/internal/resized_dimension.h"
#include "meshard/ops/pad.h"

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

std::vector<OpSample> slice_samples(SampleSource& source) {
  auto take = [](Dimensions start, Dimensions stop, Dimensions stride) {
    return [=](std::span<const Tensor> x) { return slice(x[0], start, stop, stride); };
  };
  return {
      {"half", {source.uniform(DType::f64, {16})}, take({4}, {12}, {})},
      {"strided", {source.uniform(DType::f64, {16, 4})}, take({1, 0}, {16, 4}, {2, 1})},
      {"uneven stride", {source.uniform(DType::f64, {8, 7})}, take({0, 1}, {8, 6}, {1, 3})},
      {"a row", {source.uniform(DType::f32, {4, 8})}, take({2, 0}, {3, 8}, {1, 1})},
      {"box", {source.uniform(DType::f32, {4, 8, 12})}, take({1, 0, 2}, {3, 8, 11}, {1, 4, 3})},
      {"nothing", {source.uniform(DType::f64, {4, 8})}, take({2, 0}, {2, 8}, {3, 1})},
      {"integers", {source.uniform(DType::i32, {8}, -9, 9)}, take({2}, {6}, {1})},
  };
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
    .vjp = slice_vjp,
    .batch = batch_slice,
    .samples = slice_samples,
    .parse_attributes = parse_attributes<SliceAttributes>,
    .traits = {.recomputation = Recomputation::kArithmetic, .takes_part = true},
};

Tensor slice(In x, Dimensions start, Dimensions stop, Dimensions stride) {
  Tensor operand = operand_tensor(slice_op, x);
  if (stride.empty()) stride.assign(static_cast<std::size_t>(operand.shape().rank()), 1);
  return record(
      slice_op,
      make_attributes(SliceAttributes{std::move(start), std::move(stop), std::move(stride)}),
      {&operand}, x.where);
}

}  // namespace meshard

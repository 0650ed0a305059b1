#include "meshard/ops/dynamic_slice.h"

#include <algorithm>

#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/dynamic_update_slice.h"
#include "meshard/ops/gather.h"
#include "meshard/ops/internal/resized_dimension.h"
#include "meshard/ops/internal/start_indices.h"

namespace meshard {
using namespace internal;
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

std::vector<OpSample> dynamic_slice_samples(SampleSource& source) {
  auto take = [](Dimensions sizes) {
    return [=](std::span<const Tensor> x) {
      return dynamic_slice(x[0], {x.begin() + 1, x.end()}, sizes);
    };
  };
  auto start = [&](double low, double high, DType dtype = DType::i32) {
    return source.uniform(dtype, {}, low, high);
  };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"vector", {source.uniform(f64, {16}), start(0, 8)}, take({8})},
      {"rows", {source.uniform(f64, {8, 4}), start(0, 4), start(0, 0)}, take({4, 4})},
      {"outside", {source.uniform(f64, {8, 4}), start(-9, -1), start(7, 9)}, take({2, 3})},
      {"all",
       {source.uniform(f32, {4, 8, 4}), start(0, 3), start(0, 3), start(0, 3)},
       take({4, 8, 4})},
      {"nothing", {source.uniform(f64, {4, 8}), start(0, 3), start(0, 3)}, take({0, 8})},
      {"narrow indices", {source.uniform(f32, {8}), start(0, 4, DType::u8)}, take({4})},
      {"integers", {source.uniform(DType::i32, {8}, -9, 9), start(0, 4)}, take({4})},
  };
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
    .vjp = dynamic_slice_vjp,
    .batch = batch_dynamic_slice,
    .samples = dynamic_slice_samples,
    .parse_attributes = parse_attributes<DynamicSliceAttributes>,
};

Tensor dynamic_slice(In x, const std::vector<In>& starts, Dimensions sizes) {
  SourceScope line(x.where);
  std::vector<Tensor> operands = start_tensors(dynamic_slice_op, starts);
  operands.insert(operands.begin(), operand_tensor(dynamic_slice_op, x));
  check_numbers(dynamic_slice_op, starts, operands[0].shape(), sizes, x.where);
  std::vector<const Tensor*> pointers;
  for (const Tensor& operand : operands) pointers.push_back(&operand);
  return record(dynamic_slice_op, make_attributes(DynamicSliceAttributes{std::move(sizes)}),
                std::span<const Tensor* const>(pointers), x.where);
}

}  // namespace meshard

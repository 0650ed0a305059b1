#include "meshard/ops/broadcast_in_dim.h"

#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/reshape.h"

namespace meshard {
namespace {

void infer_broadcast_in_dim(const OpCall& call, ResultTypes& results) {
  const auto& [shape, dimensions] = call.as<BroadcastInDimAttributes>();
  const TensorType& operand = call.operand(0);
  if (static_cast<int>(dimensions.size()) != operand.rank())
    call.fail(dimensions.size(), " dimensions are named for an operand of rank ", operand.rank(),
              ", ", operand);
  for (int i = 0; i < operand.rank(); ++i) {
    std::int64_t to = dimensions[static_cast<std::size_t>(i)];
    if (to < 0 || to >= shape.rank())
      call.fail("dimension ", i, " is mapped to dimension ", to, " of ", shape, ", which has rank ",
                shape.rank());
    if (i > 0 && to <= dimensions[static_cast<std::size_t>(i) - 1])
      call.fail("dimensions [", join(dimensions, ", "), "] are not ascending");
    if (operand.shape[i] != 1 && operand.shape[i] != shape[to])
      call.fail("sizes differ: operand ", operand, " dimension ", i, " = ", operand.shape[i],
                ", result ", shape, " dimension ", to, " = ", shape[to]);
  }
  results.push_back({operand.dtype, shape});
}

ShardingRule broadcast_in_dim_rule(const OpCall& call) {
  const auto& [shape, dimensions] = call.as<BroadcastInDimAttributes>();
  const Shape& from = call.operand(0).shape;
  ShardingRuleBuilder builder;
  InlineVector<int, 6> in, out;
  for (std::int64_t size : shape) out.push_back(builder.factor(size));
  for (int i = 0; i < from.rank(); ++i) {
    std::int64_t to = dimensions[static_cast<std::size_t>(i)];
    in.push_back(from[i] == shape[to] ? out[static_cast<std::size_t>(to)] : builder.factor(1));
  }
  return builder.operand(one_factor_each(in)).result(one_factor_each(out)).build();
}

void broadcast_in_dim_vjp(const VjpCall& call, std::span<Tensor> out) {
  const auto& [shape, dimensions] = call.as<BroadcastInDimAttributes>();
  const Shape& from = call.operands[0].shape();
  Dimensions repeated;
  std::size_t i = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    bool named = i < dimensions.size() && dimensions[i] == d;
    if (!named || from[static_cast<std::int64_t>(i)] != shape[d]) repeated.push_back(d);
    if (named) ++i;
  }
  out[0] = reshape(sum(call.cotangents[0], repeated), from);
}

void batch_broadcast_in_dim(const BatchCall& call, std::span<Tensor> results) {
  const auto& [shape, dimensions] = call.as<BroadcastInDimAttributes>();
  BroadcastInDimAttributes attributes{batched_shape(call.size, shape), with_batch(0, dimensions)};
  record_batched(call, make_attributes(std::move(attributes)), call.operands, results);
}

std::vector<OpSample> broadcast_in_dim_samples(SampleSource& source) {
  auto to = [](Shape shape, Dimensions dimensions) {
    return [=](std::span<const Tensor> x) { return broadcast_in_dim(x[0], shape, dimensions); };
  };
  return {
      {"a row to rows", {source.uniform(DType::f32, {8})}, to({4, 8}, {1})},
      {"a column to columns", {source.uniform(DType::f64, {4})}, to({4, 8}, {0})},
      {"size 1", {source.uniform(DType::f64, {4, 1})}, to({4, 8}, {0, 1})},
      {"size 1 and new", {source.uniform(DType::f64, {1, 4})}, to({8, 2, 4}, {1, 2})},
      {"scalar", {source.uniform(DType::f64, {})}, to({4, 4}, {})},
      {"same shape", {source.uniform(DType::f32, {4, 1})}, to({4, 1}, {0, 1})},
      {"to nothing", {source.uniform(DType::f32, {1})}, to({0, 4}, {0})},
      {"integers", {source.uniform(DType::i32, {4}, -9, 9)}, to({4, 4}, {1})},
  };
}

}  // namespace

extern constinit const OpDef broadcast_in_dim_op = {
    .name = "broadcast_in_dim",
    .operands = "x",
    .doc =
        "The operand broadcast to a larger shape: sizes of 1 are repeated, and dimensions that are "
        "not named are new.",
    .example = "broadcast_in_dim(x, {4, 2, 3}, {1, 2})",
    .infer = infer_broadcast_in_dim,
    .sharding_rule = broadcast_in_dim_rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          out.op("stablehlo.broadcast_in_dim")
              .i64_array("broadcast_dimensions", call.as<BroadcastInDimAttributes>().dimensions)
              .done();
        },
    .vjp = broadcast_in_dim_vjp,
    .batch = batch_broadcast_in_dim,
    .samples = broadcast_in_dim_samples,
    .parse_attributes = parse_attributes<BroadcastInDimAttributes>,
    .traits = {.repeats_elements = true, .recomputation = Recomputation::kFree},
};

Tensor broadcast_in_dim(In x, Shape shape, Dimensions dimensions) {
  Tensor operand = operand_tensor(broadcast_in_dim_op, x);
  for (std::int64_t& d : dimensions)
    d = normalize_dimension(d, shape.rank(), "broadcast_in_dim", effective_source(x.where));
  return record(broadcast_in_dim_op,
                make_attributes(BroadcastInDimAttributes{std::move(shape), std::move(dimensions)}),
                {&operand}, x.where);
}

Tensor broadcast_to(In x, Shape shape) {
  Tensor operand = operand_tensor("broadcast_to", x);
  const Shape& from = operand.shape();
  if (from == shape) return operand;
  SourceLocation where = effective_source(x.where);
  int lead = shape.rank() - from.rank();
  if (lead < 0)
    throw_invalid(where, "[broadcast_to] ", from, " of rank ", from.rank(),
                  " does not broadcast to ", shape, " of rank ", shape.rank());
  Dimensions dimensions;
  for (int d = 0; d < from.rank(); ++d) {
    if (from[d] != 1 && from[d] != shape[d + lead])
      throw_invalid(where, "[broadcast_to] ", from, " does not broadcast to ", shape,
                    ": dimension ", d, " = ", from[d], ", dimension ", d + lead, " = ",
                    shape[d + lead]);
    dimensions.push_back(d + lead);
  }
  return broadcast_in_dim(In(operand, where), std::move(shape), std::move(dimensions));
}

}  // namespace meshard

#include "meshard/ops/concat.h"

#include "meshard/graph/explicit_sharding.h"
#include "meshard/ops/astype.h"
#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/internal/resized_dimension.h"
#include "meshard/ops/slice.h"

namespace meshard {
using namespace internal;
namespace {

void infer_concat(const OpCall& call, ResultTypes& results) {
  std::int64_t along = call.as<ConcatAttributes>().dimension;
  if (call.operands.empty()) call.fail("takes at least one tensor");
  const TensorType& first = call.operand(0);
  if (along < 0 || along >= first.rank())
    call.fail("dimension ", along, " is outside 0..", first.rank() - 1, " of ", first);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const TensorType& other = call.operand(i);
    if (other.rank() != first.rank() || other.dtype != first.dtype)
      call.fail("the tensors must have the same rank and dtype: tensor 0 is ", first, ", tensor ",
                i, " is ", other);
    for (int d = 0; d < first.rank(); ++d)
      if (d != along && other.shape[d] != first.shape[d])
        call.fail("sizes differ outside dimension ", along, ": tensor 0 dimension ", d, " = ",
                  first.shape[d], ", tensor ", i, " dimension ", d, " = ", other.shape[d]);
    total += other.shape[along];
  }
  results.push_back({first.dtype, first.shape.with(along, total)});
}

ShardingRule concat_rule(const OpCall& call) {
  std::int64_t along = call.as<ConcatAttributes>().dimension;
  const Shape& shape = call.result().shape;
  std::size_t count = call.operands.size();
  ShardingRuleBuilder builder;
  std::vector<TensorFactors> tensors(count + 1);
  for (int d = 0; d < shape.rank(); ++d) {
    if (d == along && count > 1) {
      std::vector<std::int64_t> sizes;
      for (std::size_t i = 0; i < count; ++i) sizes.push_back(call.operand(i).shape[d]);
      sizes.push_back(shape[d]);
      auto factors = resized_dimension(builder, sizes);
      for (std::size_t t = 0; t <= count; ++t) tensors[t].push_back(factors[t]);
    } else {
      int factor = builder.factor(shape[d]);
      for (TensorFactors& tensor : tensors) tensor.push_back({factor});
    }
  }
  for (std::size_t i = 0; i < count; ++i) builder.operand(std::move(tensors[i]));
  return builder.result(std::move(tensors[count])).build();
}

void concat_vjp(const VjpCall& call, std::span<Tensor> out) {
  auto along = static_cast<std::size_t>(call.as<ConcatAttributes>().dimension);
  Dimensions start(static_cast<std::size_t>(call.cotangents[0].rank()), 0);
  for (std::size_t i = 0; i < out.size(); ++i) {
    Dimensions stop = call.operands[i].shape().sizes();
    stop[along] += start[along];
    if (call.needs(i)) out[i] = slice(call.cotangents[0], start, stop);
    start[along] = stop[along];
  }
}

std::vector<OpSample> concat_samples(SampleSource& source) {
  auto along = [](std::int64_t dimension) {
    return [=](std::span<const Tensor> x) { return concat({x.begin(), x.end()}, dimension); };
  };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"vectors", {source.uniform(f64, {4}), source.uniform(f64, {8})}, along(0)},
      {"columns", {source.uniform(f64, {8, 4}), source.uniform(f64, {8, 4})}, along(1)},
      {"three",
       {source.uniform(f64, {4, 2}), source.uniform(f64, {8, 2}), source.uniform(f64, {3, 2})},
       along(0)},
      {"middle", {source.uniform(f32, {4, 4, 8}), source.uniform(f32, {4, 12, 8})}, along(-2)},
      {"one", {source.uniform(f32, {4, 8})}, along(0)},
      {"empty part", {source.uniform(f32, {4, 0}), source.uniform(f32, {4, 8})}, along(1)},
      {"promoted",
       {source.uniform(DType::i32, {4}, -9, 9), source.uniform(f32, {4})},
       along(0),
       false},
  };
}

}  // namespace

extern constinit const OpDef concat_op = {
    .name = "concat",
    .operands = "tensors...",
    .example = "concat({x, y}, 0)",
    .infer = infer_concat,
    .sharding_rule = concat_rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          out.op("stablehlo.concatenate")
              .i64("dimension", call.as<ConcatAttributes>().dimension)
              .done();
        },
    .vjp = concat_vjp,
    .batch = batch_along<ConcatAttributes, &ConcatAttributes::dimension>,
    .samples = concat_samples,
    .sharding_conflict = [](const OpCall&, std::span<const Sharding* const> operands)
        -> std::string { return unlike_operands(operands); },
    .parse_attributes = parse_attributes<ConcatAttributes>,
    .traits = {.recomputation = Recomputation::kArithmetic},
};

Tensor concat(const std::vector<Tensor>& tensors, std::int64_t dimension, SourceLocation where) {
  SourceScope line(where);
  where = effective_source(where);
  if (tensors.empty()) throw_invalid(where, "[concat] takes at least one tensor");
  std::vector<Tensor> operands;
  DType dtype = operand_tensor(concat_op, In(tensors[0], where)).dtype();
  for (const Tensor& tensor : tensors)
    dtype = promote(dtype, operand_tensor(concat_op, In(tensor, where)).dtype(), where);
  for (const Tensor& tensor : tensors) operands.push_back(astype(In(tensor, where), dtype));
  std::vector<const Tensor*> pointers;
  for (const Tensor& operand : operands) pointers.push_back(&operand);
  std::int64_t along = normalize_dimension(dimension, tensors[0].shape().rank(), "concat", where);
  return record(concat_op, make_attributes(ConcatAttributes{along}),
                std::span<const Tensor* const>(pointers), where);
}

}  // namespace meshard

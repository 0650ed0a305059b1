#include "meshard/ops/movement.h"

#include <algorithm>
#include <array>

#include "meshard/graph/explicit_sharding.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/internal/window.h"

namespace meshard {
using namespace internal;
namespace {

void infer_permute_dims(const OpCall& call, ResultTypes& results) {
  const Dimensions& permutation = call.as<PermuteDimsAttributes>().permutation;
  const TensorType& operand = call.operand(0);
  check_one_each(call, "the permutation", permutation.size(), operand);
  Dimensions sizes, seen(permutation.size(), 0);
  for (std::int64_t d : permutation) {
    if (d < 0 || d >= operand.rank() || seen[static_cast<std::size_t>(d)]++)
      call.fail("[", join(permutation, ", "), "] is not a permutation of 0..", operand.rank() - 1,
                ", the dimensions of ", operand);
    sizes.push_back(operand.shape[d]);
  }
  results.push_back({operand.dtype, Shape(std::move(sizes))});
}

ShardingRule permute_dims_rule(const OpCall& call) {
  const Dimensions& permutation = call.as<PermuteDimsAttributes>().permutation;
  ShardingRuleBuilder builder;
  InlineVector<int, 6> in, out;
  for (std::int64_t size : call.operand(0).shape) in.push_back(builder.factor(size));
  for (std::int64_t d : permutation) out.push_back(in[static_cast<std::size_t>(d)]);
  return builder.operand(one_factor_each(in)).result(one_factor_each(out)).build();
}

void permute_dims_vjp(const VjpCall& call, std::span<Tensor> out) {
  out[0] =
      permute_dims(call.cotangents[0], inverse_of(call.as<PermuteDimsAttributes>().permutation));
}

void batch_permute_dims(const BatchCall& call, std::span<Tensor> results) {
  PermuteDimsAttributes attributes{with_batch(0, call.as<PermuteDimsAttributes>().permutation)};
  record_batched(call, make_attributes(std::move(attributes)), call.operands, results);
}

}  // namespace

extern constinit const OpDef permute_dims_op = {
    .name = "permute_dims",
    .operands = "x",
    .example = "permute_dims(x, {1, 0})",
    .infer = infer_permute_dims,
    .sharding_rule = permute_dims_rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          out.op("stablehlo.transpose")
              .i64_array("permutation", call.as<PermuteDimsAttributes>().permutation)
              .done();
        },
    .read =
        {.mnemonic = "stablehlo.transpose",
         .attributes =
             [](const OpText& text) {
               return make_attributes(PermuteDimsAttributes{text.list({"dims", "permutation"})});
             }},
    .vjp = permute_dims_vjp,
    .batch = batch_permute_dims,
    .parse_attributes = parse_attributes<PermuteDimsAttributes>,
    .traits = {.recomputation = Recomputation::kArithmetic},
};

Tensor permute_dims(In x, Dimensions permutation) {
  Tensor operand = operand_tensor(permute_dims_op, x);
  for (std::int64_t& d : permutation)
    d = normalize_dimension(d, operand.shape().rank(), "permute_dims", effective_source(x.where));
  return record(permute_dims_op, make_attributes(PermuteDimsAttributes{std::move(permutation)}),
                {&operand}, x.where);
}

Tensor permute_dims(In x) {
  Tensor operand = operand_tensor(permute_dims_op, x);
  Dimensions reversed;
  for (int d = operand.shape().rank(); d-- > 0;) reversed.push_back(d);
  return permute_dims(In(operand, x.where), std::move(reversed));
}

namespace {

void infer_flip(const OpCall& call, ResultTypes& results) {
  check_ascending(call, call.as<FlipAttributes>().dimensions);
  results.push_back(call.operand(0));
}

ShardingRule flip_rule(const OpCall& call) {
  const Dimensions& dimensions = call.as<FlipAttributes>().dimensions;
  return one_shape_rule(call, [&](int d) {
    return holds(dimensions, d) ? FactorKind::kPermutation : FactorKind::kPassThrough;
  });
}

}  // namespace

extern constinit const OpDef flip_op = {
    .name = "flip",
    .operands = "x",
    .example = "flip(x, 1)",
    .infer = infer_flip,
    .sharding_rule = flip_rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          out.op("stablehlo.reverse")
              .i64_array("dimensions", call.as<FlipAttributes>().dimensions)
              .done();
        },
    .read = {.mnemonic = "stablehlo.reverse",
             .attributes =
                 [](const OpText& text) {
                   return make_attributes(FlipAttributes{text.list({"dims", "dimensions"})});
                 }},
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = flip(call.cotangents[0], call.as<FlipAttributes>().dimensions);
        },
    .batch = batch_along_all<FlipAttributes, &FlipAttributes::dimensions>,
    .parse_attributes = parse_attributes<FlipAttributes>,
    .traits = {.recomputation = Recomputation::kArithmetic},
};

Tensor flip(In x, DimensionList dimensions) {
  Tensor operand = operand_tensor(flip_op, x);
  Dimensions resolved =
      dimensions.resolve(operand.shape().rank(), "flip", effective_source(x.where));
  return record(flip_op, make_attributes(FlipAttributes{std::move(resolved)}), {&operand}, x.where);
}

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
  std::int64_t along = call.as<ConcatAttributes>().dimension, start = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::int64_t stop = start + call.operands[i].shape()[along];
    if (call.needs(i)) out[i] = slice_along(call.cotangents[0], along, start, stop);
    start = stop;
  }
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
    .read = {.mnemonic = "stablehlo.concatenate",
             .attributes =
                 [](const OpText& text) {
                   return make_attributes(ConcatAttributes{text.number({"dim", "dimension"}, 0)});
                 }},
    .vjp = concat_vjp,
    .batch = batch_along<ConcatAttributes, &ConcatAttributes::dimension>,
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
  std::int64_t along = normalize_dimension(dimension, tensors[0].shape().rank(), "concat", where);
  return record_all(concat_op, make_attributes(ConcatAttributes{along}), operands, where)[0];
}

namespace {

void infer_pad(const OpCall& call, ResultTypes& results) {
  const auto& [low, high, interior] = call.as<PadAttributes>();
  const TensorType& operand = call.operand(0);
  const TensorType& value = call.operand(1);
  if (value.rank() != 0 || value.dtype != operand.dtype)
    call.fail("the padding value of ", operand, " must be a scalar of its dtype, not ", value);
  check_one_each(call, "low", low.size(), operand);
  check_one_each(call, "high", high.size(), operand);
  check_one_each(call, "interior", interior.size(), operand);
  Dimensions sizes;
  for (std::size_t d = 0; d < low.size(); ++d) {
    std::int64_t size = operand.shape[static_cast<std::int64_t>(d)];
    if (interior[d] < 0)
      call.fail("interior padding of dimension ", d, " is negative: ", interior[d]);
    std::int64_t padded =
        low[d] + high[d] + size + std::max<std::int64_t>(size - 1, 0) * interior[d];
    if (padded < 0)
      call.fail("dimension ", d, " = ", size, " of ", operand, " with low ", low[d], ", high ",
                high[d], ", interior ", interior[d], " would have size ", padded);
    sizes.push_back(padded);
  }
  results.push_back({operand.dtype, Shape(std::move(sizes))});
}

ShardingRule pad_rule(const OpCall& call) {
  const auto& [low, high, interior] = call.as<PadAttributes>();
  const Shape& from = call.operand(0).shape;
  const Shape& to = call.result().shape;
  ShardingRuleBuilder builder;
  TensorFactors in, out;
  for (int d = 0; d < from.rank(); ++d) {
    auto i = static_cast<std::size_t>(d);
    if (low[i] == 0 && high[i] == 0 && from[d] == to[d]) {
      in.push_back({builder.factor(from[d])});
      out.push_back(in.back());
    } else {
      auto factors = resized_dimension(builder, std::array{from[d], to[d]});
      in.push_back(factors[0]);
      out.push_back(factors[1]);
    }
  }
  return builder.operand(std::move(in)).operand({}).result(std::move(out)).build();
}

void pad_vjp(const VjpCall& call, std::span<Tensor> out) {
  const auto& [low, high, interior] = call.as<PadAttributes>();
  const Tensor& cotangent = call.cotangents[0];
  const TensorType& from = call.operands[0].type();
  if (call.needs(0)) {
    // Removes the edges (or fills in zeros where elements were removed), then the interior.
    Dimensions unlow = low, unhigh = high, start(low.size(), 0), stop, stride = interior;
    for (std::int64_t& n : unlow) n = -n;
    for (std::int64_t& n : unhigh) n = -n;
    for (std::int64_t& n : stride) ++n;
    Tensor inner = pad(cotangent, 0, std::move(unlow), std::move(unhigh));
    out[0] = slice(inner, std::move(start), inner.shape().sizes(), std::move(stride));
  }
  if (call.needs(1)) {
    Tensor is_padding = pad(filled(from, 0), 1, low, high, interior);
    out[1] = sum(multiply(cotangent, is_padding));
  }
}

// StableHLO pads with one scalar only. Padding values that differ between members are selected
// where a padding of `true` in a mask appears.
void batch_pad(const BatchCall& call, std::span<Tensor> results) {
  const auto& [low, high, interior] = call.as<PadAttributes>();
  Dimensions before = with_entry(0, low), after = with_entry(0, high),
             between = with_entry(0, interior);
  Tensor x = batched_operand(call, 0);
  if (!call.batched[1]) {
    results[0] = pad(x, call.operands[1], before, after, between);
    return;
  }
  Tensor padded = pad(x, filled({x.dtype(), {}}, 0), before, after, between);
  Tensor is_padding = pad(filled({DType::bool_, x.shape()}, 0), true, before, after, between);
  Tensor values = broadcast_in_dim(call.operands[1], padded.shape(), {0});
  results[0] = where(is_padding, values, padded);
}

}  // namespace

extern constinit const OpDef pad_op = {
    .name = "pad",
    .operands = "x, value",
    .example = "pad(x, 0, {0, 1}, {0, 1})",
    .infer = infer_pad,
    .sharding_rule = pad_rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          const auto& [low, high, interior] = call.as<PadAttributes>();
          emit_pad(out, out.results[0], out.operands[0], out.operands[1], low, high, interior);
        },
    .read = {.mnemonic = "stablehlo.pad",
             .attributes =
                 [](const OpText& text) {
                   return make_attributes(
                       PadAttributes{text.list({"low", "edge_padding_low"}),
                                     text.list({"high", "edge_padding_high"}),
                                     text.list({"interior", "interior_padding"})});
                 }},
    .vjp = pad_vjp,
    .batch = batch_pad,
    .parse_attributes = parse_attributes<PadAttributes>,
    .traits = {.recomputation = Recomputation::kArithmetic},
};

Tensor pad(In x, In value, Dimensions low, Dimensions high, Dimensions interior) {
  Tensor operand = operand_tensor(pad_op, x);
  Tensor padding = value.tensor ? operand_tensor(pad_op, value)
                                : element_wise::to_tensor(value, operand.dtype());
  if (interior.empty()) interior.assign(static_cast<std::size_t>(operand.shape().rank()), 0);
  return record(
      pad_op, make_attributes(PadAttributes{std::move(low), std::move(high), std::move(interior)}),
      {&operand, &padding}, x.where);
}

Tensor Tensor::T(SourceLocation where) const { return permute_dims(In(*this, where)); }

}  // namespace meshard

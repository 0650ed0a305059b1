#include "meshard/ops/pad.h"

#include <algorithm>
#include <array>

#include "meshard/ops/broadcast_in_dim.h"
#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/definition/pad_emission.h"
#include "meshard/ops/internal/resized_dimension.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/slice.h"
#include "meshard/ops/where.h"

namespace meshard {
using namespace internal;
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

std::vector<OpSample> pad_samples(SampleSource& source) {
  auto by = [](Dimensions low, Dimensions high, Dimensions interior) {
    return [=](std::span<const Tensor> x) { return pad(x[0], x[1], low, high, interior); };
  };
  auto value = [&](DType dtype) { return source.uniform(dtype, {}); };
  DType f64 = DType::f64, f32 = DType::f32;
  return {
      {"edges", {source.uniform(f64, {4, 8}), value(f64)}, by({1, 0}, {3, 0}, {})},
      {"doubled", {source.uniform(f32, {8}), value(f32)}, by({0}, {8}, {})},
      {"interior", {source.uniform(f64, {4, 4}), value(f64)}, by({1, 0}, {0, 2}, {2, 1})},
      {"negative", {source.uniform(f64, {8, 8}), value(f64)}, by({-2, 1}, {1, -3}, {0, 0})},
      {"negative in the gap", {source.uniform(f64, {5}), value(f64)}, by({-2}, {-1}, {2})},
      {"rank 3", {source.uniform(f32, {4, 2, 8}), value(f32)}, by({0, 1, 0}, {0, 1, 4}, {0, 0, 0})},
      {"nothing", {source.uniform(f64, {0, 4}), value(f64)}, by({2, 0}, {2, 0}, {1, 0})},
      {"scalar", {source.uniform(f32, {}), value(f32)}, by({}, {}, {})},
      {"by a number",
       {source.uniform(f64, {4, 8})},
       [](std::span<const Tensor> x) {
         return pad(x[0], 0.5, {0, 4}, {0, 4});
       }},
  };
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
    .vjp = pad_vjp,
    .batch = batch_pad,
    .samples = pad_samples,
    .parse_attributes = parse_attributes<PadAttributes>,
    .traits = {.recomputation = Recomputation::kArithmetic, .puts_part_back = true},
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

}  // namespace meshard

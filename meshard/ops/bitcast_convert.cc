#include "meshard/ops/bitcast_convert.h"

#include <algorithm>

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"

namespace meshard {
namespace {

void infer_bitcast(const OpCall& call, ResultTypes& results) {
  const TensorType& operand = call.operand(0);
  DType to = call.as<BitcastConvertAttributes>().dtype;
  if (operand.dtype == DType::bool_ || to == DType::bool_)
    call.fail("takes numbers, not ", operand.dtype, " to ", to, ": use astype");
  std::size_t from_bytes = size_in_bytes(operand.dtype), to_bytes = size_in_bytes(to);
  Dimensions sizes = operand.shape.sizes();
  if (from_bytes > to_bytes) {
    sizes.push_back(static_cast<std::int64_t>(from_bytes / to_bytes));
  } else if (from_bytes < to_bytes) {
    auto parts = static_cast<std::int64_t>(to_bytes / from_bytes);
    if (sizes.empty() || sizes.back() != parts)
      call.fail("an element of ", to, " consists of ", parts, " elements of ", operand.dtype,
                ", but the last dimension of ", operand, " has a different size");
    sizes.pop_back();
  }
  results.push_back({to, Shape(std::move(sizes))});
}

// The dimension that holds the parts of an element must not be split.
ShardingRule bitcast_rule(const OpCall& call) {
  const Shape &in = call.operand(0).shape, &out = call.result().shape;
  ShardingRuleBuilder builder;
  InlineVector<int, 6> operand, result;
  for (int d = 0; d < std::min(in.rank(), out.rank()); ++d) {
    operand.push_back(builder.factor(in[d]));
    result.push_back(operand.back());
  }
  const Shape& longer = in.rank() > out.rank() ? in : out;
  if (in.rank() != out.rank())
    (in.rank() > out.rank() ? operand : result)
        .push_back(builder.factor(longer[longer.rank() - 1], FactorKind::kNeedReplication));
  return builder.operand(one_factor_each(operand)).result(one_factor_each(result)).build();
}

std::vector<OpSample> bitcast_samples(SampleSource& source) {
  auto to = [](DType dtype) {
    return [dtype](std::span<const Tensor> x) { return bitcast_convert(x[0], dtype); };
  };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"f32 as u32", {source.uniform(f32, {4, 8})}, to(DType::u32), false},
      {"u32 as f32", {source.uniform(DType::u32, {8}, 0, 1e9)}, to(f32), false},
      {"f64 as i16", {source.uniform(f64, {4, 2})}, to(DType::i16), false},
      {"u8 as f32", {source.uniform(DType::u8, {8, 2, 4}, 0, 60)}, to(f32), false},
      {"bf16 as f16", {source.uniform(DType::bf16, {4, 8})}, to(DType::f16), false},
      {"scalar", {source.uniform(f32, {})}, to(DType::u8), false},
  };
}

}  // namespace

extern constinit const OpDef bitcast_convert_op = {
    .name = "bitcast_convert",
    .operands = "x",
    .doc =
        "The bits of the elements, reinterpreted as another dtype; the parts of an element form "
        "the last dimension.",
    .example = "bitcast_convert(x, DType::u32)",
    .infer = infer_bitcast,
    .sharding_rule = bitcast_rule,
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.bitcast_convert").done(); },
    .vjp = element_wise::zero_vjp,
    .batch = element_wise::batch,
    .samples = bitcast_samples,
    .parse_attributes = parse_attributes<BitcastConvertAttributes>,
};

Tensor bitcast_convert(In x, DType dtype) {
  Tensor operand = operand_tensor(bitcast_convert_op, x);
  return record(bitcast_convert_op, make_attributes(BitcastConvertAttributes{dtype}), {&operand},
                x.where);
}

}  // namespace meshard

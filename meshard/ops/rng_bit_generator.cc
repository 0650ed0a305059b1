#include "meshard/ops/rng_bit_generator.h"

#include "meshard/ops/definition/define.h"

namespace meshard {
namespace {

void infer_rng(const OpCall& call, ResultTypes& results) {
  const auto& [algorithm, dtype, shape] = call.as<RngBitGeneratorAttributes>();
  const TensorType& state = call.operand(0);
  bool three = algorithm != RngAlgorithm::kThreeFry;
  if (state != TensorType{DType::u64, {2}} && !(three && state == TensorType{DType::u64, {3}}))
    call.fail("a state of ", enum_name(algorithm), " must be u64[2]", three ? " or u64[3]" : "",
              ", not ", state);
  if (!is_integer(dtype)) call.fail("generates integers, not ", dtype);
  results.push_back(state);
  results.push_back({dtype, shape});
}

ShardingRule rng_rule(const OpCall& call) {
  ShardingRuleBuilder builder;
  TensorFactors bits,
      state{{builder.factor(call.operand(0).shape[0], FactorKind::kNeedReplication)}};
  for (std::int64_t size : call.result(1).shape)
    bits.push_back({builder.factor(size, FactorKind::kNeedReplication)});
  return builder.operand(state).result(state).result(bits).build();
}

std::unique_ptr<const Attributes> read_rng(const OpText& text) {
  if (text.results.size() != 2) return nullptr;
  const TensorType& bits = text.results[1];
  return make_attributes(RngBitGeneratorAttributes{RngAlgorithm::kDefault, bits.dtype, bits.shape});
}

}  // namespace

extern constinit const OpDef rng_bit_generator_op = {
    .name = "rng_bit_generator",
    .operands = "state",
    .doc = "Random bits from the compiler's own generator, and its next state.",
    .example = "rng_bit_generator(bitcast_convert(zeros({2, 2}), DType::u64), {2, 3}).bits",
    .infer = infer_rng,
    .sharding_rule = rng_rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          out.op("stablehlo.rng_bit_generator")
              .enumeration("rng_algorithm", "rng_algorithm",
                           enum_name(call.as<RngBitGeneratorAttributes>().algorithm))
              .done();
        },
    .read = {.mnemonic = "stablehlo.rng_bit_generator",
             .attributes = read_rng,
             .dtypes_as_written = true},
    .vjp = kNotDifferentiable,
    .batch = batch_one_by_one,
    .parse_attributes = parse_attributes<RngBitGeneratorAttributes>,
};

RandomBits rng_bit_generator(In state, Shape shape, DType dtype, RngAlgorithm algorithm) {
  Tensor operand = operand_tensor(rng_bit_generator_op, state);
  Tensor next =
      record(rng_bit_generator_op,
             make_attributes(RngBitGeneratorAttributes{algorithm, dtype, std::move(shape)}),
             {&operand}, state.where);
  return {next, Tensor(Value(next.value().node(), 1))};
}

}  // namespace meshard

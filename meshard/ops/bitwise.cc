#include "meshard/ops/bitwise.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"

namespace meshard {
namespace {

using element_wise::Domain;

template <Tensor (*op)(In, In)>
std::vector<OpSample> bitwise_samples(SampleSource& source) {
  // From 0 up: an amount of shift is not negative.
  std::vector<OpSample> list = element_wise::binary_samples_of(source, DType::i32, op, 0, 40);
  for (OpSample& sample : element_wise::binary_samples_of(source, DType::u8, op, 0, 255))
    list.push_back(std::move(sample));
  list.push_back(
      {"negative numbers",
       {source.uniform(DType::i32, {4, 8}, -1000, 1000), source.uniform(DType::i32, {4, 8}, 0, 31)},
       [](std::span<const Tensor> x) { return op(x[0], x[1]); },
       false});
  list.push_back({"a number",
                  {source.uniform(DType::u32, {4, 8}, 0, 1e9)},
                  [](std::span<const Tensor> x) { return op(x[0], 3); },
                  false});
  return list;
}

template <Domain domain, Tensor (*op)(In, In)>
constexpr OpDef bitwise(std::string_view name, std::string_view doc, std::string_view example,
                        void (*emit)(const OpCall&, OpEmission&)) {
  return {
      .name = name,
      .operands = "a, b",
      .doc = doc,
      .example = example,
      .infer = element_wise::infer_same<domain>,
      .sharding_rule = element_wise::rule,
      .emit = emit,
      .vjp = kNotDifferentiable,
      .batch = element_wise::batch,
      .samples = bitwise_samples<op>,
  };
}

}  // namespace

extern constinit const OpDef bitwise_and_op = bitwise<Domain::kIntegerOrBool, bitwise_and>(
    "bitwise_and", "The bits that both elements have.", "bitwise_and(astype(x, DType::i32), 3)",
    [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.and"); });
extern constinit const OpDef bitwise_or_op = bitwise<Domain::kIntegerOrBool, bitwise_or>(
    "bitwise_or", "The bits that one of the elements has, or both have.",
    "bitwise_or(astype(x, DType::i32), 3)",
    [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.or"); });
extern constinit const OpDef bitwise_xor_op = bitwise<Domain::kIntegerOrBool, bitwise_xor>(
    "bitwise_xor", "The bits in which the elements differ.",
    "bitwise_xor(astype(x, DType::i32), 3)",
    [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.xor"); });
extern constinit const OpDef bitwise_left_shift_op = bitwise<Domain::kInteger, bitwise_left_shift>(
    "bitwise_left_shift", "The bits of the first element moved up by the second.",
    "bitwise_left_shift(astype(x, DType::i32), 3)",
    [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.shift_left"); });
extern constinit const OpDef bitwise_right_shift_op =
    bitwise<Domain::kInteger, bitwise_right_shift>(
        "bitwise_right_shift",
        "The bits of the first element moved down by the second; a signed element keeps its sign.",
        "bitwise_right_shift(astype(x, DType::i32), 3)", [](const OpCall& call, OpEmission& out) {
          out.element_wise(is_signed(call.result().dtype) ? "stablehlo.shift_right_arithmetic"
                                                          : "stablehlo.shift_right_logical");
        });

extern constinit const OpDef bitwise_invert_op = {
    .name = "bitwise_invert",
    .operands = "x",
    .doc = "Every bit of each element turned over.",
    .example = "bitwise_invert(astype(x, DType::i32))",
    .infer = element_wise::infer_same<Domain::kIntegerOrBool>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.not"); },
    .vjp = kNotDifferentiable,
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) {
          auto call = [](std::span<const Tensor> x) { return bitwise_invert(x[0]); };
          return std::vector<OpSample>{
              {"vector", {source.uniform(DType::i32, {8}, -9, 9)}, call, false},
              {"matrix", {source.uniform(DType::u8, {4, 8}, 0, 255)}, call, false},
              {"bools", {source.uniform(DType::bool_, {4, 2, 8}, 0, 1)}, call, false},
          };
        },
};

Tensor bitwise_and(In a, In b) {
  return element_wise::binary(bitwise_and_op, Domain::kIntegerOrBool, a, b);
}
Tensor bitwise_or(In a, In b) {
  return element_wise::binary(bitwise_or_op, Domain::kIntegerOrBool, a, b);
}
Tensor bitwise_xor(In a, In b) {
  return element_wise::binary(bitwise_xor_op, Domain::kIntegerOrBool, a, b);
}
Tensor bitwise_invert(In x) {
  return element_wise::unary(bitwise_invert_op, Domain::kIntegerOrBool, x);
}
Tensor bitwise_left_shift(In a, In b) {
  return element_wise::binary(bitwise_left_shift_op, Domain::kInteger, a, b);
}
Tensor bitwise_right_shift(In a, In b) {
  return element_wise::binary(bitwise_right_shift_op, Domain::kInteger, a, b);
}

}  // namespace meshard

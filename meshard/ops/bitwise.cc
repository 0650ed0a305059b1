#include "meshard/ops/bitwise.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"

namespace meshard {
namespace {

template <Tensor (*op)(In, In)>
std::vector<OpSample> bitwise_samples(SampleSource& source) {
  // Non-negative operands: a shift amount must not be negative.
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

template <DTypeDomain domain, Tensor (*op)(In, In)>
constexpr OpDef bitwise(std::string_view name, std::string_view doc, std::string_view example,
                        std::string_view mnemonic,
                        void (*emit)(const OpCall&, OpEmission&) = nullptr) {
  return element_wise::define({
      .name = name,
      .operands = "a, b",
      .doc = doc,
      .example = example,
      .domain = domain,
      .mnemonic = mnemonic,
      .emit = emit,
      .vjp = kNotDifferentiable,
      .samples = bitwise_samples<op>,
  });
}

std::vector<OpSample> bits_of_one_samples(SampleSource& source, DTypeDomain domain,
                                          Tensor (*op)(In)) {
  auto call = [op](std::span<const Tensor> x) { return op(x[0]); };
  std::vector<OpSample> samples{
      {"vector", {source.uniform(DType::i32, {8}, -9, 9)}, call, false},
      {"matrix", {source.uniform(DType::u8, {4, 8}, 0, 255)}, call, false},
      {"64 bits", {source.uniform(DType::i64, {4, 8}, -1e15, 1e15)}, call, false},
  };
  if (domain == DTypeDomain::kIntegerOrBool)
    samples.push_back({"bools", {source.uniform(DType::bool_, {4, 2, 8}, 0, 1)}, call, false});
  return samples;
}

template <DTypeDomain domain, Tensor (*op)(In)>
constexpr OpDef bits_of_one(std::string_view name, std::string_view doc, std::string_view example,
                            std::string_view mnemonic) {
  return element_wise::define({
      .name = name,
      .operands = "x",
      .doc = doc,
      .example = example,
      .domain = domain,
      .mnemonic = mnemonic,
      .vjp = kNotDifferentiable,
      .samples = [](SampleSource& source) { return bits_of_one_samples(source, domain, op); },
  });
}

}  // namespace

extern constinit const OpDef bitwise_and_op = bitwise<DTypeDomain::kIntegerOrBool, bitwise_and>(
    "bitwise_and", "The bitwise AND of each pair of elements.",
    "bitwise_and(astype(x, DType::i32), 3)", "stablehlo.and");
extern constinit const OpDef bitwise_or_op = bitwise<DTypeDomain::kIntegerOrBool, bitwise_or>(
    "bitwise_or", "The bitwise OR of each pair of elements.",
    "bitwise_or(astype(x, DType::i32), 3)", "stablehlo.or");
extern constinit const OpDef bitwise_xor_op = bitwise<DTypeDomain::kIntegerOrBool, bitwise_xor>(
    "bitwise_xor", "The bitwise XOR of each pair of elements.",
    "bitwise_xor(astype(x, DType::i32), 3)", "stablehlo.xor");
extern constinit const OpDef bitwise_left_shift_op =
    bitwise<DTypeDomain::kInteger, bitwise_left_shift>(
        "bitwise_left_shift", "The bits of the first element, shifted left by the second.",
        "bitwise_left_shift(astype(x, DType::i32), 3)", "stablehlo.shift_left");
extern constinit const OpDef bitwise_right_shift_op = bitwise<DTypeDomain::kInteger,
                                                              bitwise_right_shift>(
    "bitwise_right_shift",
    "The bits of the first element, shifted right by the second; a signed element keeps its sign.",
    "bitwise_right_shift(astype(x, DType::i32), 3)", "stablehlo.shift_right_arithmetic",
    [](const OpCall& call, OpEmission& out) {
      out.element_wise(is_signed(call.result().dtype) ? "stablehlo.shift_right_arithmetic"
                                                      : "stablehlo.shift_right_logical");
    });

extern constinit const OpDef shift_right_logical_op =
    bitwise<DTypeDomain::kInteger, shift_right_logical>(
        "shift_right_logical",
        "The bits of the first element, shifted right by the second and filled with zeros, even if "
        "it is signed.",
        "shift_right_logical(astype(x, DType::i32), 3)", "stablehlo.shift_right_logical");

extern constinit const OpDef bitwise_invert_op =
    bits_of_one<DTypeDomain::kIntegerOrBool, bitwise_invert>(
        "bitwise_invert", "Each element with all its bits inverted.",
        "bitwise_invert(astype(x, DType::i32))", "stablehlo.not");
extern constinit const OpDef popcnt_op =
    bits_of_one<DTypeDomain::kInteger, popcnt>("popcnt", "The number of one bits in each element.",
                                               "popcnt(astype(x, DType::i32))", "stablehlo.popcnt");
extern constinit const OpDef count_leading_zeros_op =
    bits_of_one<DTypeDomain::kInteger, count_leading_zeros>(
        "count_leading_zeros", "The number of leading zero bits in each element.",
        "count_leading_zeros(astype(x, DType::i32))", "stablehlo.count_leading_zeros");

Tensor bitwise_and(In a, In b) { return element_wise::binary(bitwise_and_op, a, b); }
Tensor bitwise_or(In a, In b) { return element_wise::binary(bitwise_or_op, a, b); }
Tensor bitwise_xor(In a, In b) { return element_wise::binary(bitwise_xor_op, a, b); }
Tensor bitwise_invert(In x) { return element_wise::unary(bitwise_invert_op, x); }
Tensor bitwise_left_shift(In a, In b) { return element_wise::binary(bitwise_left_shift_op, a, b); }
Tensor bitwise_right_shift(In a, In b) {
  return element_wise::binary(bitwise_right_shift_op, a, b);
}
Tensor shift_right_logical(In a, In b) {
  return element_wise::binary(shift_right_logical_op, a, b);
}
Tensor popcnt(In x) { return element_wise::unary(popcnt_op, x); }
Tensor count_leading_zeros(In x) { return element_wise::unary(count_leading_zeros_op, x); }

}  // namespace meshard

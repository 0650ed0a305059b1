#include "meshard/ops/bitwise.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"

namespace meshard {
namespace {

constexpr OpDef bitwise(DTypeDomain domain, std::string_view name, std::string_view doc,
                        std::string_view example, std::string_view mnemonic,
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
  });
}

constexpr OpDef bits_of_one(DTypeDomain domain, std::string_view name, std::string_view doc,
                            std::string_view example, std::string_view mnemonic) {
  return element_wise::define({
      .name = name,
      .operands = "x",
      .doc = doc,
      .example = example,
      .domain = domain,
      .mnemonic = mnemonic,
      .vjp = kNotDifferentiable,
  });
}

}  // namespace

extern constinit const OpDef bitwise_and_op =
    bitwise(DTypeDomain::kIntegerOrBool, "bitwise_and", "The bitwise AND of each pair of elements.",
            "bitwise_and(astype(x, DType::i32), 3)", "stablehlo.and");
extern constinit const OpDef bitwise_or_op =
    bitwise(DTypeDomain::kIntegerOrBool, "bitwise_or", "The bitwise OR of each pair of elements.",
            "bitwise_or(astype(x, DType::i32), 3)", "stablehlo.or");
extern constinit const OpDef bitwise_xor_op =
    bitwise(DTypeDomain::kIntegerOrBool, "bitwise_xor", "The bitwise XOR of each pair of elements.",
            "bitwise_xor(astype(x, DType::i32), 3)", "stablehlo.xor");
extern constinit const OpDef bitwise_left_shift_op =
    bitwise(DTypeDomain::kInteger, "bitwise_left_shift",
            "The bits of the first element, shifted left by the second.",
            "bitwise_left_shift(astype(x, DType::i32), 3)", "stablehlo.shift_left");
extern constinit const OpDef bitwise_right_shift_op = bitwise(
    DTypeDomain::kInteger, "bitwise_right_shift",
    "The bits of the first element, shifted right by the second; a signed element keeps its sign.",
    "bitwise_right_shift(astype(x, DType::i32), 3)", "stablehlo.shift_right_arithmetic",
    [](const OpCall& call, OpEmission& out) {
      out.element_wise(is_signed(call.result().dtype) ? "stablehlo.shift_right_arithmetic"
                                                      : "stablehlo.shift_right_logical");
    });

extern constinit const OpDef shift_right_logical_op = bitwise(
    DTypeDomain::kInteger, "shift_right_logical",
    "The bits of the first element, shifted right by the second and filled with zeros, even if "
    "it is signed.",
    "shift_right_logical(astype(x, DType::i32), 3)", "stablehlo.shift_right_logical");

extern constinit const OpDef bitwise_invert_op = bits_of_one(
    DTypeDomain::kIntegerOrBool, "bitwise_invert", "Each element with all its bits inverted.",
    "bitwise_invert(astype(x, DType::i32))", "stablehlo.not");
extern constinit const OpDef popcnt_op =
    bits_of_one(DTypeDomain::kInteger, "popcnt", "The number of one bits in each element.",
                "popcnt(astype(x, DType::i32))", "stablehlo.popcnt");
extern constinit const OpDef count_leading_zeros_op =
    bits_of_one(DTypeDomain::kInteger, "count_leading_zeros",
                "The number of leading zero bits in each element.",
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

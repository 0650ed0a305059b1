#include "meshard/ops/logical.h"

#include "meshard/ops/definition/element_wise.h"

namespace meshard {
namespace {

template <Tensor (*op)(In, In)>
constexpr OpDef logical(std::string_view name, std::string_view doc, std::string_view example,
                        std::string_view mnemonic) {
  return element_wise::define({
      .name = name,
      .operands = "a, b",
      .doc = doc,
      .example = example,
      .domain = DTypeDomain::kBool,
      .mnemonic = mnemonic,
      .vjp = kNotDifferentiable,
      .samples =
          [](SampleSource& source) {
            return element_wise::binary_samples_of(source, DType::bool_, op, 0, 1);
          },
  });
}

}  // namespace

extern constinit const OpDef logical_and_op =
    logical<logical_and>("logical_and", "True where both elements are true.",
                         "logical_and(less(x, y), less(x, 1))", "stablehlo.and");
extern constinit const OpDef logical_or_op =
    logical<logical_or>("logical_or", "True where at least one of the elements is true.",
                        "logical_or(less(x, y), less(x, 1))", "stablehlo.or");
extern constinit const OpDef logical_xor_op =
    logical<logical_xor>("logical_xor", "True where exactly one of the elements is true.",
                         "logical_xor(less(x, y), less(x, 1))", "stablehlo.xor");

extern constinit const OpDef logical_not_op = element_wise::define({
    .name = "logical_not",
    .operands = "x",
    .doc = "True where the element is false.",
    .example = "logical_not(less(x, y))",
    .domain = DTypeDomain::kBool,
    .mnemonic = "stablehlo.not",
    .vjp = kNotDifferentiable,
    .samples =
        [](SampleSource& source) {
          auto call = [](std::span<const Tensor> x) { return logical_not(x[0]); };
          return std::vector<OpSample>{
              {"vector", {source.uniform(DType::bool_, {8}, 0, 1)}, call, false},
              {"matrix", {source.uniform(DType::bool_, {4, 8}, 0, 1)}, call, false},
              {"rank 3", {source.uniform(DType::bool_, {4, 2, 8}, 0, 1)}, call, false},
          };
        },
});

Tensor logical_and(In a, In b) { return element_wise::binary(logical_and_op, a, b); }
Tensor logical_or(In a, In b) { return element_wise::binary(logical_or_op, a, b); }
Tensor logical_xor(In a, In b) { return element_wise::binary(logical_xor_op, a, b); }
Tensor logical_not(In x) { return element_wise::unary(logical_not_op, x); }

}  // namespace meshard

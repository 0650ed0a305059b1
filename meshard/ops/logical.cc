#include "meshard/ops/logical.h"

#include "meshard/ops/element_wise.h"
#include "meshard/ops/emission.h"

namespace meshard {
namespace {

using element_wise::Domain;

template <Tensor (*op)(In, In)>
constexpr OpDef logical(std::string_view name, std::string_view doc, std::string_view example,
                        void (*emit)(const OpCall&, OpEmission&)) {
  return {
      .name = name,
      .operands = "a, b",
      .doc = doc,
      .example = example,
      .infer = element_wise::infer_same<Domain::kBool>,
      .sharding_rule = element_wise::rule,
      .emit = emit,
      .vjp = kNotDifferentiable,
      .batch = element_wise::batch,
      .samples =
          [](SampleSource& source) {
            return element_wise::binary_samples_of(source, DType::bool_, op, 0, 1);
          },
  };
}

}  // namespace

extern constinit const OpDef logical_and_op = logical<logical_and>(
    "logical_and", "True where both elements are true.", "logical_and(less(x, y), less(x, 1))",
    [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.and"); });
extern constinit const OpDef logical_or_op =
    logical<logical_or>("logical_or", "True where at least one of the elements is true.",
                        "logical_or(less(x, y), less(x, 1))",
                        [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.or"); });
extern constinit const OpDef logical_xor_op =
    logical<logical_xor>("logical_xor", "True where exactly one of the elements is true.",
                         "logical_xor(less(x, y), less(x, 1))",
                         [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.xor"); });

extern constinit const OpDef logical_not_op = {
    .name = "logical_not",
    .operands = "x",
    .doc = "True where the element is false.",
    .example = "logical_not(less(x, y))",
    .infer = element_wise::infer_same<Domain::kBool>,
    .sharding_rule = element_wise::rule,
    .emit = [](const OpCall&, OpEmission& out) { out.element_wise("stablehlo.not"); },
    .vjp = kNotDifferentiable,
    .batch = element_wise::batch,
    .samples =
        [](SampleSource& source) {
          auto call = [](std::span<const Tensor> x) { return logical_not(x[0]); };
          return std::vector<OpSample>{
              {"vector", {source.uniform(DType::bool_, {8}, 0, 1)}, call, false},
              {"matrix", {source.uniform(DType::bool_, {4, 8}, 0, 1)}, call, false},
              {"rank 3", {source.uniform(DType::bool_, {4, 2, 8}, 0, 1)}, call, false},
          };
        },
};

Tensor logical_and(In a, In b) { return element_wise::binary(logical_and_op, Domain::kBool, a, b); }
Tensor logical_or(In a, In b) { return element_wise::binary(logical_or_op, Domain::kBool, a, b); }
Tensor logical_xor(In a, In b) { return element_wise::binary(logical_xor_op, Domain::kBool, a, b); }
Tensor logical_not(In x) { return element_wise::unary(logical_not_op, Domain::kBool, x); }

}  // namespace meshard

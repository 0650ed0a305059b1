#include "meshard/ops/comparison.h"

#include "meshard/ops/complex.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"

namespace meshard {
namespace {

// StableHLO's comparison directions.
enum class Direction { kEq, kNe, kLt, kLe, kGt, kGe };
constexpr std::string_view kDirections[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};

template <Direction direction>
void emit(const OpCall&, OpEmission& out) {
  out.op("stablehlo.compare")
      .enumeration("comparison_direction", "comparison_direction",
                   kDirections[static_cast<int>(direction)])
      .done();
}

template <Direction direction>
constexpr OpDef comparison(std::string_view name, std::string_view doc, std::string_view example) {
  // Complex numbers are not ordered: they only compare as equal or not equal.
  constexpr bool kOrdered = direction != Direction::kEq && direction != Direction::kNe;
  return element_wise::define({
      .name = name,
      .operands = "a, b",
      .doc = doc,
      .example = example,
      .domain = kOrdered ? DTypeDomain::kOrdered : DTypeDomain::kAny,
      .gives_bools = true,
      .mnemonic = "stablehlo.compare",
      .emit = emit<direction>,
      .vjp = kNotDifferentiable,
  });
}

}  // namespace

extern constinit const OpDef equal_op =
    comparison<Direction::kEq>("equal", "True where the elements are equal.", "equal(x, y)");
extern constinit const OpDef not_equal_op =
    comparison<Direction::kNe>("not_equal", "True where the elements differ.", "not_equal(x, y)");
extern constinit const OpDef less_op = comparison<Direction::kLt>(
    "less", "True where the first element is less than the second.", "less(x, y)");
extern constinit const OpDef less_equal_op = comparison<Direction::kLe>(
    "less_equal", "True where the first element is less than or equal to the second.",
    "less_equal(x, y)");
extern constinit const OpDef greater_op = comparison<Direction::kGt>(
    "greater", "True where the first element is greater than the second.", "greater(x, y)");
extern constinit const OpDef greater_equal_op = comparison<Direction::kGe>(
    "greater_equal", "True where the first element is greater than or equal to the second.",
    "greater_equal(x, y)");

Tensor equal(In a, In b) { return element_wise::binary(equal_op, a, b); }
Tensor not_equal(In a, In b) { return element_wise::binary(not_equal_op, a, b); }
Tensor less(In a, In b) { return element_wise::binary(less_op, a, b); }
Tensor less_equal(In a, In b) { return element_wise::binary(less_equal_op, a, b); }
Tensor greater(In a, In b) { return element_wise::binary(greater_op, a, b); }
Tensor greater_equal(In a, In b) { return element_wise::binary(greater_equal_op, a, b); }

extern constinit const OpDef isfinite_op = element_wise::define({
    .name = "isfinite",
    .operands = "x",
    .example = "isfinite(x)",
    .domain = DTypeDomain::kFloat,
    .gives_bools = true,
    .mnemonic = "stablehlo.is_finite",
    .vjp = kNotDifferentiable,
});

Tensor isfinite(In x) {
  if (x.tensor && is_complex(element_wise::dtype_of_operand(isfinite_op, x))) {
    SourceScope line(x.where);
    return logical_and(isfinite(real(x)), isfinite(imag(x)));
  }
  return element_wise::unary(isfinite_op, x);
}

namespace {

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
  });
}

}  // namespace

extern constinit const OpDef logical_and_op =
    logical("logical_and", "True where both elements are true.",
            "logical_and(less(x, y), less(x, 1))", "stablehlo.and");
extern constinit const OpDef logical_or_op =
    logical("logical_or", "True where at least one of the elements is true.",
            "logical_or(less(x, y), less(x, 1))", "stablehlo.or");
extern constinit const OpDef logical_xor_op =
    logical("logical_xor", "True where exactly one of the elements is true.",
            "logical_xor(less(x, y), less(x, 1))", "stablehlo.xor");

extern constinit const OpDef logical_not_op = element_wise::define({
    .name = "logical_not",
    .operands = "x",
    .doc = "True where the element is false.",
    .example = "logical_not(less(x, y))",
    .domain = DTypeDomain::kBool,
    .mnemonic = "stablehlo.not",
    .vjp = kNotDifferentiable,
});

Tensor logical_and(In a, In b) { return element_wise::binary(logical_and_op, a, b); }
Tensor logical_or(In a, In b) { return element_wise::binary(logical_or_op, a, b); }
Tensor logical_xor(In a, In b) { return element_wise::binary(logical_xor_op, a, b); }
Tensor logical_not(In x) { return element_wise::unary(logical_not_op, x); }

}  // namespace meshard

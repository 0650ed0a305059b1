#include "meshard/ops/comparison.h"

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

// Whole numbers from a small range, so that some elements are equal.
template <Tensor (*op)(In, In)>
std::vector<OpSample> comparison_samples(SampleSource& source) {
  std::vector<OpSample> list = element_wise::binary_samples_of(source, DType::f32, op, -2, 2);
  for (DType dtype : {DType::i32, DType::u8, DType::bool_})
    for (OpSample& sample : element_wise::binary_samples_of(source, dtype, op, -2, 2))
      list.push_back(std::move(sample));
  list.push_back({"i32 and f32",
                  {source.uniform(DType::i32, {4, 8}), source.uniform(DType::f32, {4, 8})},
                  [](std::span<const Tensor> x) { return op(x[0], x[1]); },
                  false});
  list.push_back({"a number",
                  {source.uniform(DType::i32, {4, 8})},
                  [](std::span<const Tensor> x) { return op(x[0], 1); },
                  false});
  return list;
}

template <Direction direction, Tensor (*op)(In, In)>
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
      .samples = comparison_samples<op>,
  });
}

}  // namespace

extern constinit const OpDef equal_op =
    comparison<Direction::kEq, equal>("equal", "True where the elements are equal.", "equal(x, y)");
extern constinit const OpDef not_equal_op = comparison<Direction::kNe, not_equal>(
    "not_equal", "True where the elements differ.", "not_equal(x, y)");
extern constinit const OpDef less_op = comparison<Direction::kLt, less>(
    "less", "True where the first element is less than the second.", "less(x, y)");
extern constinit const OpDef less_equal_op = comparison<Direction::kLe, less_equal>(
    "less_equal", "True where the first element is less than or equal to the second.",
    "less_equal(x, y)");
extern constinit const OpDef greater_op = comparison<Direction::kGt, greater>(
    "greater", "True where the first element is greater than the second.", "greater(x, y)");
extern constinit const OpDef greater_equal_op = comparison<Direction::kGe, greater_equal>(
    "greater_equal", "True where the first element is greater than or equal to the second.",
    "greater_equal(x, y)");

Tensor equal(In a, In b) { return element_wise::binary(equal_op, a, b); }
Tensor not_equal(In a, In b) { return element_wise::binary(not_equal_op, a, b); }
Tensor less(In a, In b) { return element_wise::binary(less_op, a, b); }
Tensor less_equal(In a, In b) { return element_wise::binary(less_equal_op, a, b); }
Tensor greater(In a, In b) { return element_wise::binary(greater_op, a, b); }
Tensor greater_equal(In a, In b) { return element_wise::binary(greater_equal_op, a, b); }

}  // namespace meshard

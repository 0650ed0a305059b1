// What the element-wise ops of one and two operands have in common, for each row of their table:
// text, dtypes, derivatives. The tests of the families have the special cases.
#include "tests/support/element_wise_table.h"

#include <gtest/gtest.h>

#include <set>

#include "meshard/graph/leaf.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/op_table.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// The text of StableHLO's and CHLO's specifications: a short form exists for ops of StableHLO whose
// operands and result have one type.
std::string specified_text(std::string_view mnemonic, int operands, bool gives_bools) {
  std::string given = operands == 1 ? "%arg0" : "%arg0, %arg1", type = "tensor<2x3xf32>";
  std::string result = gives_bools ? "tensor<2x3xi1>" : type;
  if (mnemonic.starts_with("stablehlo.") && !gives_bools)
    return cat("%0 = ", mnemonic, " ", given, " : ", type);
  std::string types = operands == 1 ? type : cat(type, ", ", type);
  return cat("%0 = \"", mnemonic, "\"(", given, ") : (", types, ") -> ", result);
}

TEST(ElementWiseTable, EachOpEmitsWhatIsSpecified) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3}), y = x;
  auto check = [&](const auto& row, const Tensor& result, int operands) {
    if (row.mnemonic.empty()) return;
    EXPECT_EQ(emitted(result),
              specified_text(row.mnemonic, operands, result.dtype() == DType::bool_));
  };
  for (const UnaryOp& row : unary_ops())
    if (row.real) check(row, row.call(x), 1);
  for (const BinaryOp& row : binary_ops())
    if (!row.mnemonic.empty()) check(row, row.call(x, y), 2);
}

// Each row calls the op that it names.
TEST(ElementWiseTable, EachOpRecordsItself) {
  auto input = [](const auto& row) {
    if (row.name.starts_with("logical")) return from_host(HostArray::zeros({DType::bool_, {2}}));
    bool is_float = row.real || !row.whole;
    return from_host(HostArray::zeros({is_float ? DType::f64 : DType::i32, {2}}));
  };
  auto check = [](const auto& row, const Tensor& result) {
    EXPECT_EQ(result.value()->op().name, row.name);
    EXPECT_EQ(find_op(row.name), &result.value()->op());
  };
  for (const UnaryOp& row : unary_ops()) check(row, row.call(input(row)));
  for (const BinaryOp& row : binary_ops()) check(row, row.call(input(row), input(row)));
}

// Integers stay integers where the op has a function of them; otherwise they become f32. Floats
// keep their dtype. Comparisons give bools.
TEST(ElementWiseTable, Dtypes) {
  auto expected = [](const auto& row, DType dtype) {
    if (find_op(row.name)->gives_bools) return DType::bool_;
    return is_floating(dtype) || row.whole ? dtype : DType::f32;
  };
  for (DType dtype : {DType::i32, DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64}) {
    Tensor x = from_host(HostArray::from_vector<float>({1, 2}, {2, 1}).astype(dtype));
    for (const UnaryOp& row : unary_ops()) {
      if (!row.real) continue;
      EXPECT_EQ(row.call(x).type(), (TensorType{expected(row, dtype), Shape{2, 1}})) << row.name;
    }
    for (const BinaryOp& row : binary_ops()) {
      if (!row.real && row.whole) continue;
      DType own = expected(row, dtype), wide = expected(row, DType::f64);
      EXPECT_EQ(row.call(1, x).type(), (TensorType{own, Shape{2, 1}})) << row.name;
      EXPECT_EQ(row.call(x, from_host<double>({1, 2}, {2})).type(), (TensorType{wide, Shape{2, 2}}))
          << row.name;
    }
  }
}

// The vjp against central differences of the function in the table, at the random elements of every
// f64 sample.
TEST(ElementWiseTable, DerivativesAreFiniteDifferences) {
  int checked = 0;
  for (const UnaryOp& row : unary_ops())
    if (find_op(row.name)->vjp) check_vjp(*find_op(row.name)), ++checked;
  for (const BinaryOp& row : binary_ops()) {
    bool only_by_the_second = row.name == "polygamma" || row.name == "zeta";
    if (find_op(row.name)->vjp)
      check_vjp(*find_op(row.name), only_by_the_second ? 1 : 0), ++checked;
  }
  for (const char* name : {"clip", "where"}) check_vjp(*find_op(name));
  EXPECT_GE(checked, 45);
}

// A new op cannot be forgotten: each that is defined like these has a row, or is listed here
// because the test of its family checks it.
TEST(ElementWiseTable, EveryElementWiseOpHasARow) {
  const std::set<std::string_view> elsewhere{
      "astype", "bitcast_convert",  "clip",          "complex", "imag",
      "real",   "reduce_precision", "stop_gradient", "vary",    "where"};
  for (const OpDef* op : all_ops()) {
    if (op->batch != element_wise::batch || elsewhere.contains(op->name)) continue;
    EXPECT_TRUE(row_of(unary_ops(), op->name) || row_of(binary_ops(), op->name)) << op->name;
  }
}

// The functions that the C++ library lacks, at points where they are known.
TEST(ElementWiseTable, ReferencesHaveKnownValues) {
  const double pi = std::numbers::pi, gamma = std::numbers::egamma, apery = 1.2020569031595942;
  EXPECT_NEAR(reference::digamma(1), -gamma, 1e-15);
  EXPECT_NEAR(reference::digamma(0.5), -gamma - 2 * std::numbers::ln2, 1e-14);
  EXPECT_NEAR(reference::digamma(-0.5), 2 - gamma - 2 * std::numbers::ln2, 1e-14);
  EXPECT_NEAR(reference::digamma(-0.25), 4 - gamma + pi / 2 - 3 * std::numbers::ln2, 1e-14);
  EXPECT_TRUE(std::isnan(reference::digamma(-1)));
  EXPECT_NEAR(reference::zeta(2, 1), pi * pi / 6, 1e-14);
  EXPECT_NEAR(reference::zeta(4, 1), std::pow(pi, 4) / 90, 1e-14);
  EXPECT_NEAR(reference::zeta(2, 0.5), pi * pi / 2, 1e-14);
  EXPECT_NEAR(reference::zeta(3, 1), apery, 1e-14);
  EXPECT_NEAR(reference::polygamma(0, 1), -gamma, 1e-15);
  EXPECT_NEAR(reference::polygamma(1, 0.5), pi * pi / 2, 1e-14);
  EXPECT_NEAR(reference::polygamma(2, 1), -2 * apery, 1e-14);
  EXPECT_NEAR(reference::erf_inv(std::erf(0.75)), 0.75, 1e-15);
}

}  // namespace
}  // namespace meshard

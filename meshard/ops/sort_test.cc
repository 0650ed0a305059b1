#include "meshard/ops/sort.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Sort, TypesOfAllOperandsStay) {
  std::vector<Tensor> y = sort({input({4, 8}), input({4, 8}, DType::i32)}, -1);
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(y[0].dtype(), DType::f32);
  EXPECT_EQ(y[1].type(), (TensorType{DType::i32, {4, 8}}));
}

TEST(Sort, Errors) {
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(
      [] {
        sort(input({4, 8}), 2);
      },
      ErrorCode::kOutOfRange, {"sort_test.cc:", "dimension 2"}));
  EXPECT_TRUE(throws_error(
      [] {
        sort({input({4}), input({5})}, 0);
      },
      invalid, {"shapes differ", "f32[4]", "f32[5]"}));
  EXPECT_TRUE(throws_error([] { sort(std::vector<Tensor>{}, 0); }, invalid, {"at least one"}));
}

TEST(Sort, TheSecondKeyDecidesWhereTheFirstIsEqual) {
  Tensor a = input({4}, DType::i32), b = input({4}, DType::u8);
  std::string text = emitted(sort({a, b}, 0, false, 2)[0]);
  std::size_t compares = text.find("stablehlo.compare\"(%b2, %b3)");
  EXPECT_NE(compares, std::string::npos) << text;
  EXPECT_NE(text.find("LT", text.find("stablehlo.compare\"(%b0, %b1)", compares)),
            std::string::npos);
  EXPECT_NE(text.find("%t3 = stablehlo.and %t2, %t0"), std::string::npos) << text;
  EXPECT_NE(text.find("%t4 = stablehlo.or %t1, %t3"), std::string::npos) << text;
  EXPECT_TRUE(throws_error(
      [&] {
        sort({a, b}, 0, false, 3);
      },
      ErrorCode::kInvalidArgument, {"keys = 3", "1..2"}));
}

TEST(Sort, EmitsAndRule) {
  Tensor y = sort(input({4, 8}, DType::i32), 1, true);
  std::string text = emitted(y);
  EXPECT_NE(text.find("\"stablehlo.sort\"(%arg0) <{dimension = 1 : i64, is_stable = true}> ({"),
            std::string::npos)
      << text;
  // Descending: the operands are compared in reverse order.
  EXPECT_NE(text.find("\"stablehlo.compare\"(%b1, %b0)"), std::string::npos) << text;
  EXPECT_EQ(rule_of(y), "([i, j])->([i, j]) {i=4, j=8} need_replication={j}");
}

}  // namespace
}  // namespace meshard

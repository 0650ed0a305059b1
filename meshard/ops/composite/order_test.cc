#include "meshard/ops/composite/order.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// meshard-conformance tests the values with numerics.json.

TEST(Order, Types) {
  EXPECT_EQ(argsort(input({4, 8}), 0).type(), (TensorType{DType::i32, {4, 8}}));
  auto [values, indices] = top_k(input({4, 8}, DType::bf16), 3);
  EXPECT_EQ(values.type(), (TensorType{DType::bf16, {4, 3}}));
  EXPECT_EQ(indices.type(), (TensorType{DType::i32, {4, 3}}));
}

TEST(Order, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        top_k(input({4, 8}), 5, 0);
      },
      ErrorCode::kInvalidArgument, {"order_test.cc:", "k = 5", "0..4", "dimension 0"}));
  EXPECT_TRUE(throws_error([] { argsort(input({})); }, ErrorCode::kOutOfRange, {"[argsort]"}));
}

}  // namespace
}  // namespace meshard

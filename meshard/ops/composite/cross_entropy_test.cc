#include "meshard/ops/composite/cross_entropy.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(CrossEntropy, Types) {
  EXPECT_EQ(cross_entropy(input({4, 8}), input({4}, DType::i32)).type(),
            (TensorType{DType::f32, {}}));
  EXPECT_EQ(cross_entropy(input({4, 8}, DType::bf16), input({8}, DType::u8), 0).dtype(),
            DType::f32);
  EXPECT_EQ(cross_entropy(input({2, 4, 8}), input({2, 4, 8})).shape(), Shape{});
}

TEST(CrossEntropy, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        cross_entropy(input({4, 8}), input({5}, DType::i32));
      },
      ErrorCode::kInvalidArgument, {"cross_entropy_test.cc:", "i32[5]", "[4]", "f32[4,8]"}));
  EXPECT_TRUE(throws_error(
      [] {
        cross_entropy(input({4, 8}), input({4}));
      },
      ErrorCode::kInvalidArgument, {"probabilities f32[4]", "f32[4,8]"}));
}

}  // namespace
}  // namespace meshard

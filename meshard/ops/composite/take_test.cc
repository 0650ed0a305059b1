#include "meshard/ops/composite/take.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Take, Types) {
  Tensor x = input({4, 8, 2});
  EXPECT_EQ(take(x, input({3, 5}, DType::i32), 1).shape(), (Shape{4, 3, 5, 2}));
  EXPECT_EQ(take(x, 2, -1).shape(), (Shape{4, 8}));
  EXPECT_EQ(take_along_axis(x, input({4, 3, 2}, DType::i64), 1).shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(take_along_axis(input({1, 8}), input({4, 1}, DType::i32)).shape(), (Shape{4, 1}));
}

TEST(Take, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        take(input({0, 4}), input({2}, DType::i32));
      },
      ErrorCode::kInvalidArgument, {"take_test.cc:", "f32[0,4]", "empty"}));
  EXPECT_TRUE(throws_error(
      [] {
        take_along_axis(input({4, 8}), input({3, 1}, DType::i32));
      },
      ErrorCode::kInvalidArgument, {"dimension 0 = 4", "dimension 0 = 3"}));
  EXPECT_TRUE(throws_error(
      [] {
        take_along_axis(input({4, 8}), input({4}, DType::i32));
      },
      ErrorCode::kInvalidArgument, {"f32[4,8]", "i32[4]"}));
}

}  // namespace
}  // namespace meshard

#include "meshard/ops/composite/argmax.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Argmax, Types) {
  EXPECT_EQ(argmax(input({4, 8})).type(), (TensorType{DType::i32, {}}));
  EXPECT_EQ(argmin(input({4, 8}), 0).type(), (TensorType{DType::i32, {8}}));
  EXPECT_EQ(argmax(input({4, 8}), -1, true).shape(), (Shape{4, 1}));
  EXPECT_EQ(argmax(input({4, 8}), std::nullopt, true).shape(), (Shape{1, 1}));
  EXPECT_EQ(argmax(input({4}, DType::bool_), 0).dtype(), DType::i32);
}

TEST(Argmax, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        argmax(input({4, 0}), 1);
      },
      ErrorCode::kInvalidArgument, {"argmax_test.cc:", "[argmax]", "f32[4,0]"}));
  EXPECT_TRUE(
      throws_error([] { argmin(input({4}), 1); }, ErrorCode::kOutOfRange, {"[argmin]", "1"}));
}

}  // namespace
}  // namespace meshard

#include "meshard/ops/truncated_divide.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(TruncatedDivide, Emits) {
  EXPECT_EQ(emitted(truncated_divide(input({2}, DType::i32), input({2}, DType::i32))),
            "%0 = stablehlo.divide %arg0, %arg1 : tensor<2xi32>");
}

TEST(TruncatedDivide, IsOfIntegers) {
  EXPECT_EQ(truncated_divide(input({2, 1}, DType::u8), input({3}, DType::i32)).type(),
            (TensorType{DType::i32, {2, 3}}));
  EXPECT_TRUE(throws_error([] { truncated_divide(input({2}), 2); }, ErrorCode::kInvalidArgument,
                           {"truncated_divide_test.cc:", "takes integers, not f32"}));
}

}  // namespace
}  // namespace meshard

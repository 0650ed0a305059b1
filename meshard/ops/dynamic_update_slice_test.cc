#include "meshard/ops/dynamic_update_slice.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(DynamicUpdateSlice, TheUpdateTakesTheDtype) {
  Tensor y = dynamic_update_slice(input({8, 4}, DType::bf16), input({2, 4}), {1, 0});
  EXPECT_EQ(y.type(), (TensorType{DType::bf16, {8, 4}}));
}

TEST(DynamicUpdateSlice, Errors) {
  Tensor x = input({8, 4});
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(
      [&] {
        dynamic_update_slice(x, input({9, 4}), {0, 0});
      },
      invalid, {"dynamic_update_slice_test.cc:", "f32[9,4]", "dimension 0"}));
  EXPECT_TRUE(throws_error(
      [&] {
        dynamic_update_slice(x, input({4}), {0, 0});
      },
      invalid, {"dtype and rank", "f32[4]"}));
  EXPECT_TRUE(throws_error([&] { dynamic_update_slice(x, x, {0}); }, invalid, {"starts has 1"}));
}

TEST(DynamicUpdateSlice, EmitsAndRule) {
  Tensor at = input({}, DType::i32);
  Tensor y = dynamic_update_slice(input({8, 4}), input({4, 4}), {at, at});
  EXPECT_EQ(emitted(y),
            "%0 = \"stablehlo.dynamic_update_slice\"(%arg0, %arg1, %arg2, %arg3) : "
            "(tensor<8x4xf32>, tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>");
  EXPECT_EQ(rule_of(y),
            "([ij, k], [i, k], [], [])->([ij, k]) {i=4, j=2, k=4} "
            "need_replication={j} permutation={i}");
}

}  // namespace
}  // namespace meshard

#include "meshard/ops/dynamic_slice.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(DynamicSlice, TypesAndStarts) {
  Tensor at = input({}, DType::i64);
  Tensor y = dynamic_slice(input({8, 4}), {at, 0}, {2, 3});
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_EQ(y.value()->operands()[2].type().dtype, DType::i64) << "tensors decide for numbers";
}

TEST(DynamicSlice, Errors) {
  Tensor x = input({8, 4});
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(
      [&] {
        dynamic_slice(x, {0}, {2, 3});
      },
      invalid, {"dynamic_slice_test.cc:", "starts has 1 entries", "rank 2"}));
  EXPECT_TRUE(throws_error([&] { dynamic_slice(x, {0, 0}, {2}); }, invalid, {"sizes has 1"}));
  EXPECT_TRUE(throws_error(
      [&] {
        dynamic_slice(x, {0, 0}, {9, 1});
      },
      invalid, {"size 9 of dimension 0", "0..8"}));
  EXPECT_TRUE(throws_error(
      [&] {
        dynamic_slice(x, {input({}), 0}, {1, 1});
      },
      invalid, {"start of dimension 0", "not f32[]"}));
  EXPECT_TRUE(throws_error(
      [&] {
        dynamic_slice(x, {input({1}, DType::i32), 0}, {1, 1});
      },
      invalid, {"rank 0", "i32[1]"}));
  EXPECT_TRUE(throws_error([&] { dynamic_slice(x, {0.5, 0}, {1, 1}); }, invalid, {"not 0.5"}));
}

TEST(DynamicSlice, EmitsAndRule) {
  Tensor at = input({}, DType::i32), narrow = input({}, DType::u8);
  Tensor y = dynamic_slice(input({8, 4}), {at, at}, {4, 4});
  EXPECT_EQ(emitted(y),
            "%0 = \"stablehlo.dynamic_slice\"(%arg0, %arg1, %arg2) <{slice_sizes = array<i64: 4, "
            "4>}> : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<4x4xf32>");
  EXPECT_EQ(rule_of(y),
            "([ij, k], [], [])->([i, k]) {i=4, j=2, k=4} need_replication={j} "
            "permutation={i}");
  EXPECT_NE(emitted(dynamic_slice(input({8}), {narrow}, {4})).find("stablehlo.convert"),
            std::string::npos);
}

}  // namespace
}  // namespace meshard

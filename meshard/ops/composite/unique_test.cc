#include "meshard/ops/composite/unique.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/matchers.h"

// tests/conformance/composites_test.cc compares the values.
namespace meshard {
namespace {

TEST(Unique, Types) {
  Unique all = unique_all(input({2, 3}), 4);
  EXPECT_EQ(all.values.type(), (TensorType{DType::f32, {4}}));
  EXPECT_EQ(all.indices.type(), (TensorType{DType::i32, {4}}));
  EXPECT_EQ(all.inverse_indices.type(), (TensorType{DType::i32, {2, 3}}));
  EXPECT_EQ(all.counts.type(), (TensorType{DType::i32, {4}}));
  EXPECT_EQ(all.number.type(), (TensorType{DType::i32, {}}));
  EXPECT_EQ(unique_values(input({2}), 0).shape(), Shape{0});
}

TEST(Unique, Errors) {
  EXPECT_TRUE(throws_error([] { unique_values(input({2}), -1); }, ErrorCode::kInvalidArgument,
                           {"unique_test.cc:", "size = -1"}));
  EXPECT_TRUE(
      throws_error([] { unique_counts(input({0}), 1); }, ErrorCode::kInvalidArgument, {"f32[0]"}));
}

}  // namespace
}  // namespace meshard

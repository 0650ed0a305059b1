#include "meshard/ops/composite/segment.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

// tests/conformance/composites_test.cc compares the values.
namespace meshard {
namespace {

TEST(Segment, Types) {
  EXPECT_EQ(segment_sum(input({6, 2, 3}), input({6}, DType::i32), 4).type(),
            (TensorType{DType::f32, {4, 2, 3}}));
  EXPECT_EQ(segment_sum(input({6}, DType::bool_), input({6}, DType::u8), 4).type(),
            (TensorType{DType::i32, {4}}));
  EXPECT_EQ(segment_mean(input({6, 2}, DType::i32), input({6}, DType::i64), 4).type(),
            (TensorType{DType::f32, {4, 2}}));
}

TEST(Segment, TypesOfTheOthers) {
  EXPECT_EQ(segment_prod(input({6}, DType::bool_), input({6}, DType::u8), 4).type(),
            (TensorType{DType::i32, {4}}));
  EXPECT_EQ(segment_max(input({6, 2}, DType::bf16), input({6}, DType::i64), 0).type(),
            (TensorType{DType::bf16, {0, 2}}));
  EXPECT_EQ(segment_min(input({6, 2}, DType::u8), input({6}, DType::i32), 4).type(),
            (TensorType{DType::u8, {4, 2}}));
  EXPECT_TRUE(throws_error([] { segment_max(input({6}, DType::bool_), input({6}, DType::i32), 4); },
                           ErrorCode::kInvalidArgument,
                           {"segment_test.cc:", "[segment_max]", "bool[6]"}));
  EXPECT_TRUE(throws_error([] { segment_min(input({6}, DType::c64), input({6}, DType::i32), 4); },
                           ErrorCode::kInvalidArgument, {"[segment_min]", "c64[6]"}));
  EXPECT_TRUE(throws_error([] { segment_prod(input({6}), input({5}, DType::i32), 4); },
                           ErrorCode::kInvalidArgument,
                           {"segment_test.cc:", "[segment_prod]", "i32[5]"}));
}

TEST(Segment, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        segment_sum(input({6, 2}), input({5}, DType::i32), 4);
      },
      ErrorCode::kInvalidArgument, {"segment_test.cc:", "i32[5]", "f32[6,2]"}));
  EXPECT_TRUE(throws_error(
      [] {
        segment_sum(input({6, 2}), input({6}), 4);
      },
      ErrorCode::kInvalidArgument, {"f32[6]"}));
  EXPECT_TRUE(throws_error([] { segment_mean(input({6}), input({6}, DType::i32), -1); },
                           ErrorCode::kInvalidArgument, {"count = -1"}));
}

}  // namespace
}  // namespace meshard

#include "meshard/ops/composite/rearrange.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Rearrange, Shapes) {
  EXPECT_EQ(squeeze(input({1, 4, 1})).shape(), Shape{4});
  EXPECT_EQ(squeeze(input({1, 4, 1}), -1).shape(), (Shape{1, 4}));
  EXPECT_EQ(expand_dims(input({4, 2}), 1).shape(), (Shape{4, 1, 2}));
  EXPECT_EQ(expand_dims(input({4, 2}), -1).shape(), (Shape{4, 2, 1}));
  EXPECT_EQ(flatten(input({4, 2})).shape(), Shape{8});
  EXPECT_EQ(flatten(input({})).shape(), Shape{1});
  EXPECT_EQ(swapaxes(input({2, 3, 4}), 0, -1).shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(moveaxis(input({2, 3, 4, 5}), 0, -1).shape(), (Shape{3, 4, 5, 2}));
  EXPECT_EQ(moveaxis(input({2, 3, 4, 5}), {0, 1}, {-1, 0}).shape(), (Shape{3, 4, 5, 2}));
}

TEST(Rearrange, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        squeeze(input({4, 1}), 0);
      },
      ErrorCode::kInvalidArgument, {"rearrange_test.cc:", "dimension 0 = 4 of f32[4,1]"}));
  EXPECT_TRUE(throws_error([] { expand_dims(input({4}), 2); }, ErrorCode::kOutOfRange,
                           {"[expand_dims]", "2"}));
  EXPECT_TRUE(throws_error(
      [] {
        moveaxis(input({2, 3}), {0, 0}, {0, 1});
      },
      ErrorCode::kInvalidArgument, {"[0, 0]", "twice"}));
  EXPECT_TRUE(throws_error(
      [] {
        moveaxis(input({2, 3}), {0}, {0, 1});
      },
      ErrorCode::kInvalidArgument, {"1 sources for 2 destinations"}));
}

}  // namespace
}  // namespace meshard

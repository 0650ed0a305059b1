#include "meshard/ops/composite/conv.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Conv, ChecksTheNumberOfSpatialDimensions) {
  EXPECT_EQ(conv1d(input({2, 6, 3}), input({3, 3, 2}), {.padding = Padding::kSame}).shape(),
            (Shape{2, 6, 2}));
  EXPECT_EQ(conv2d(input({2, 6, 5, 3}), input({3, 2, 3, 4})).shape(), (Shape{2, 4, 4, 4}));
  EXPECT_EQ(conv3d(input({2, 6, 5, 4, 3}), input({3, 2, 1, 3, 4})).shape(), (Shape{2, 4, 4, 4, 4}));
  EXPECT_TRUE(throws_error(
      [] {
        conv2d(input({2, 6, 3}), input({3, 3, 2}));
      },
      ErrorCode::kInvalidArgument,
      {"conv_test.cc:", "[conv2d] takes tensors of rank 4", "f32[2,6,3]"}));
}

// Sizes from lax.conv_transpose of JAX 0.10.
TEST(ConvTranspose, StretchesByTheStrides) {
  auto size = [](std::int64_t kernel, std::int64_t stride, Padding padding,
                 std::int64_t dilation = 1) {
    return conv_transpose(input({1, 5, 2}), input({kernel, 2, 3}),
                          {.strides = {stride}, .padding = padding, .kernel_dilation = {dilation}})
        .shape()[1];
  };
  for (std::int64_t kernel : {1, 2, 3, 4})
    for (std::int64_t stride : {1, 2, 3})
      EXPECT_EQ(size(kernel, stride, Padding::kSame), 5 * stride);
  EXPECT_EQ(size(3, 2, Padding::kValid), 11);
  EXPECT_EQ(size(2, 3, Padding::kValid), 15);
  EXPECT_EQ(size(3, 2, Padding::kValid, 2), 13);
  EXPECT_TRUE(throws_error(
      [] {
        conv_transpose(input({1, 5, 2}), input({3, 2, 3}), {.input_dilation = {2}});
      },
      ErrorCode::kInvalidArgument,
      {"conv_test.cc:", "[conv_transpose] input_dilation and batch_groups are not supported"}));
}

}  // namespace
}  // namespace meshard

#include "meshard/ops/clip.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"

namespace meshard {
namespace {

TEST(Clip, Emits) {
  Tensor x = from_host<float>({1, 2}, {2});
  // StableHLO's order is min, operand, max.
  EXPECT_EQ(
      emitted(clip(x, x, x)),
      R"(%0 = "stablehlo.clamp"(%arg1, %arg0, %arg2) : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>)");
}

TEST(Clip, NumbersAreWeakAndBoundsBroadcast) {
  Tensor x = from_host<float>({-2, 0.5f, 7}, {3});
  EXPECT_EQ(interpret(clip(x, -1, 1)), HostArray::from_vector<float>({-1, 0.5f, 1}));
  EXPECT_EQ(clip(from_host<std::uint8_t>({1}, {1}), 0, 3).dtype(), DType::u8);
  EXPECT_EQ(clip(x, from_host<float>({0, 1}, {2, 1}), 5).shape(), (Shape{2, 3}));
}

TEST(Clip, BoundsThatTheDtypeCannotHoldAreRefused) {
  Tensor x = from_host<std::int8_t>({1}, {1});
  EXPECT_TRUE(throws_error([&] { (void)clip(x, -200, 200); }, ErrorCode::kInvalidArgument,
                           {"clip_test.cc:", "i8 cannot hold -200: it holds -128 to 127"}));
  EXPECT_TRUE(throws_error([&] { (void)clip(x, -128, 200); }, ErrorCode::kInvalidArgument,
                           {"i8 cannot hold 200"}));
}

TEST(Clip, CotangentsGoToWhatWasChosen) {
  Tensor x = from_host<double>({-2, -1, 0, 1, 2}, {5});
  std::vector<Tensor> slopes =
      recorded_vjp(clip(x, -1, 1), from_host<double>({1, 1, 1, 1, 1}, {5}));
  EXPECT_EQ(interpret(slopes[0]), HostArray::from_vector<double>({0, 0, 1, 0, 0}));
  EXPECT_EQ(interpret(slopes[1]), HostArray::from_vector<double>({1, 0, 0, 0, 0}));
  EXPECT_EQ(interpret(slopes[2]), HostArray::from_vector<double>({0, 0, 0, 0, 1}));
}

}  // namespace
}  // namespace meshard

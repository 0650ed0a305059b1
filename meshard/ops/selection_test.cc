#include "meshard/ops/selection.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Where, Emits) {
  Tensor condition = from_host(HostArray::from_vector<bool>({true, false}));
  Tensor a = from_host<float>({1, 2}, {2});
  EXPECT_EQ(
      emitted(where(condition, a, a)),
      R"(%0 = "stablehlo.select"(%arg0, %arg1, %arg2) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>)");
}

TEST(Where, BroadcastsAllThreeAndPromotesTheValues) {
  Tensor condition = from_host(HostArray::from_vector<bool>({true, false}, {2, 1}));
  Tensor result = where(condition, from_host<std::int32_t>({1, 2, 3}, {3}), 0.5);
  EXPECT_EQ(interpret(result), HostArray::from_vector<float>({1, 2, 3, 0.5f, 0.5f, 0.5f}, {2, 3}));
  EXPECT_EQ(interpret(where(true, from_host<float>({4}, {1}), 0)),
            HostArray::from_vector<float>({4}));
}

TEST(Where, WantsBoolsAndShapesThatMeet) {
  Tensor x = from_host<float>({1, 2}, {2});
  EXPECT_TRUE(throws_error([&] { where(x, x, x); }, ErrorCode::kInvalidArgument,
                           {"selection_test.cc", "[where]", "bools, not f32", "not_equal(x, 0)"}));
  Tensor condition = from_host(HostArray::from_vector<bool>({true, false, true}));
  EXPECT_TRUE(throws_error([&] { where(condition, x, 0); }, ErrorCode::kInvalidArgument,
                           {"[where]", "[3]", "[2]"}));
}

TEST(Maximum, EqualElementsShareTheCotangent) {
  Tensor result = maximum(from_host<double>({1, 2, 3}, {3}), from_host<double>({2, 2, 2}, {3}));
  std::vector<Tensor> slopes = recorded_vjp(result, from_host<double>({1, 1, 1}, {3}));
  EXPECT_EQ(interpret(slopes[0]), HostArray::from_vector<double>({0, 0.5, 1}));
  EXPECT_EQ(interpret(slopes[1]), HostArray::from_vector<double>({1, 0.5, 0}));
}

TEST(Minimum, EqualElementsShareTheCotangent) {
  Tensor result = minimum(from_host<double>({1, 2, 3}, {3}), from_host<double>({2, 2, 2}, {3}));
  std::vector<Tensor> slopes = recorded_vjp(result, from_host<double>({1, 1, 1}, {3}));
  EXPECT_EQ(interpret(slopes[0]), HostArray::from_vector<double>({1, 0.5, 0}));
  EXPECT_EQ(interpret(slopes[1]), HostArray::from_vector<double>({0, 0.5, 1}));
}

// The derivatives of minimum(maximum(x, min), max) with respect to x, min and max; ties are halved.
std::vector<HostArray> clip_as_two(const std::vector<double>& x, const std::vector<double>& low,
                                   const std::vector<double>& high) {
  auto share = [](double chosen, double other) {
    return chosen > other ? 1.0 : chosen == other ? 0.5 : 0.0;
  };
  std::vector<double> of_x, of_low, of_high;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double raised = std::max(x[i], low[i]), kept = share(high[i], raised);
    of_x.push_back(kept * share(x[i], low[i]));
    of_low.push_back(kept * share(low[i], x[i]));
    of_high.push_back(share(raised, high[i]));
  }
  return {HostArray::from_vector<double>(of_x), HostArray::from_vector<double>(of_low),
          HostArray::from_vector<double>(of_high)};
}

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
                           {"selection_test.cc:", "i8 cannot hold -200: it holds -128 to 127"}));
  EXPECT_TRUE(throws_error([&] { (void)clip(x, -128, 200); }, ErrorCode::kInvalidArgument,
                           {"i8 cannot hold 200"}));
}

TEST(Clip, CotangentsGoToWhatWasChosenAndHalfEachAtABound) {
  Tensor x = from_host<double>({-2, -1, 0, 1, 2}, {5});
  std::vector<Tensor> slopes =
      recorded_vjp(clip(x, -1, 1), from_host<double>({1, 1, 1, 1, 1}, {5}));
  EXPECT_EQ(interpret(slopes[0]), HostArray::from_vector<double>({0, 0.5, 1, 0.5, 0}));
  EXPECT_EQ(interpret(slopes[1]), HostArray::from_vector<double>({1, 0.5, 0, 0, 0}));
  EXPECT_EQ(interpret(slopes[2]), HostArray::from_vector<double>({0, 0, 0, 0.5, 1}));
}

// The same derivatives as of the two operations, for all ties and orders.
TEST(Clip, DerivativesAreThoseOfMaximumAndMinimum) {
  std::vector<double> numbers{-1, 0, 1}, x, low, high;
  for (double a : numbers)
    for (double b : numbers)
      for (double c : numbers) {
        x.push_back(a);
        low.push_back(b);
        high.push_back(c);
      }
  auto tensor = [](const std::vector<double>& values) {
    return from_host(HostArray::from_vector<double>(values));
  };
  Tensor ones = tensor(std::vector<double>(x.size(), 1));
  std::vector<Tensor> slopes = recorded_vjp(clip(tensor(x), tensor(low), tensor(high)), ones);
  std::vector<HostArray> shares = clip_as_two(x, low, high);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(interpret(slopes[i]), shares[i]) << i;
}

}  // namespace
}  // namespace meshard

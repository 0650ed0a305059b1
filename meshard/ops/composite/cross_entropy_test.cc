#include <gtest/gtest.h>

#include <cmath>

#include "meshard/ops/composite/softmax.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(CrossEntropy, Types) {
  EXPECT_EQ(cross_entropy(input({4, 8}), input({4}, DType::i32)).type(),
            (TensorType{DType::f32, {}}));
  EXPECT_EQ(
      cross_entropy(input({4, 8}, DType::bf16), input({8}, DType::u8), {.dimension = 0}).dtype(),
      DType::f32);
  EXPECT_EQ(cross_entropy(input({2, 4, 8}), input({2, 4, 8})).shape(), Shape{});
}

// Empty braces are the default options: the classes are the last dimension.
TEST(CrossEntropy, EmptyBracesAreTheDefaultOptions) {
  Tensor x = from_host<double>({1, 2, 3, 4, 5, 7}, {2, 3}),
         t = from_host<std::int32_t>({0, 2}, {2});
  EXPECT_EQ(interpret(cross_entropy(x, t, {})), interpret(cross_entropy(x, t)));
  EXPECT_EQ(interpret(cross_entropy(x, t, {})),
            interpret(cross_entropy(x, t, {.dimension = -1, .reduction = LossReduction::kMean})));
}

TEST(CrossEntropy, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        cross_entropy(input({4, 8}), input({5}, DType::i32));
      },
      ErrorCode::kInvalidArgument, {"cross_entropy_test.cc:", "i32[5]", "[4]", "f32[4,8]"}));
  EXPECT_TRUE(throws_error(
      [] {
        cross_entropy(input({4, 8}), input({4}));
      },
      ErrorCode::kInvalidArgument, {"probabilities f32[4]", "f32[4,8]"}));
}

TEST(CrossEntropy, Options) {
  // The log of (1, 2, 5) / 8 in each row, shifted.
  std::vector<double> logits;
  for (double shift : {0.0, 3.0})
    for (double weight : {1, 2, 5}) logits.push_back(std::log(weight) + shift);
  Tensor x = from_host(logits, {2, 3}), targets = from_host<std::int32_t>({2, 0}, {2});
  double first = std::log(8.0 / 5), second = std::log(8.0);
  auto value = [&](const CrossEntropyOptions& options) {
    return interpret(cross_entropy(x, targets, options)).to_vector<double>();
  };
  auto expect_values = [](const std::vector<double>& got, const std::vector<double>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12);
  };
  expect_values(value({}), {(first + second) / 2});
  expect_values(value({.reduction = LossReduction::kSum}), {first + second});
  expect_values(value({.reduction = LossReduction::kNone}), {first, second});
  expect_values(value({.ignored = 0}), {first});
  expect_values(value({.ignored = 0, .reduction = LossReduction::kNone}), {first, 0});
  double all = (std::log(8.0) + std::log(4.0) + std::log(8.0 / 5)) / 3;
  std::vector<double> smooth{0.7 * first + 0.3 * all, 0.7 * second + 0.3 * all};
  expect_values(value({.label_smoothing = 0.3, .reduction = LossReduction::kNone}), smooth);
  // One-hot probabilities are equivalent to the class number.
  Tensor shares = from_host<double>({0, 0, 1, 1, 0, 0}, {2, 3});
  expect_values(
      interpret(
          cross_entropy(x, shares, {.label_smoothing = 0.3, .reduction = LossReduction::kNone}))
          .to_vector<double>(),
      smooth);
  expect_values(interpret(cross_entropy(x, from_host<std::int32_t>({7, 7}, {2}), {.ignored = 7}))
                    .to_vector<double>(),
                {0});
}

TEST(CrossEntropy, OfATargetThatIsNoClassIsNan) {
  Tensor x = from_host<double>({1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}, {4, 3});
  auto value = [&](const Tensor& targets, const CrossEntropyOptions& options) {
    return interpret(cross_entropy(x, targets, options)).to_vector<double>();
  };
  CrossEntropyOptions each{.reduction = LossReduction::kNone};
  for (const Tensor& targets : {from_host<std::int32_t>({2, 3, -1, -100}, {4}),
                                from_host<std::int8_t>({2, 3, -1, 127}, {4})}) {
    std::vector<double> got = value(targets, each);
    EXPECT_NEAR(got[0], std::log(1 + std::exp(-1) + std::exp(-2)), 1e-12);
    for (std::size_t i : {1u, 2u, 3u}) EXPECT_TRUE(std::isnan(got[i])) << i;
    EXPECT_TRUE(std::isnan(value(targets, {})[0]));
  }
  EXPECT_TRUE(std::isnan(value(from_host<std::uint8_t>({3, 0, 1, 2}, {4}), each)[0]));
  // The ignored number does not count as an invalid class.
  EXPECT_NEAR(value(from_host<std::int32_t>({2, -100, -100, -100}, {4}), {.ignored = -100})[0],
              std::log(1 + std::exp(-1) + std::exp(-2)), 1e-12);
}

TEST(CrossEntropy, OfAClassWithoutProbability) {
  // Two classes of probability 1/2, and an impossible one whose target probability is 0.
  Tensor x = from_host<double>({0, -INFINITY, 0}, {1, 3});
  Tensor shares = from_host<double>({0.25, 0, 0.75}, {1, 3});
  EXPECT_NEAR(interpret(cross_entropy(x, shares)).item<double>(), std::log(2.0), 1e-12);
  Tensor impossible = from_host<double>({0.25, 0.5, 0.25}, {1, 3});
  EXPECT_EQ(interpret(cross_entropy(x, impossible)).item<double>(), INFINITY);
  // Binary decisions with infinite logits: two right, two wrong.
  Tensor sure = from_host<double>({-INFINITY, INFINITY, -INFINITY, INFINITY}, {4});
  Tensor targets = from_host<double>({0, 1, 1, 0}, {4});
  EXPECT_EQ(
      interpret(binary_cross_entropy(sure, targets, LossReduction::kNone)).to_vector<double>(),
      (std::vector<double>{0, 0, INFINITY, INFINITY}));
}

TEST(CrossEntropy, OfDecisions) {
  Tensor x = from_host<double>({0, std::log(3.0), -1000, 1000}, {4});
  Tensor targets = from_host<double>({1, 0.25, 0, 0}, {4});
  // p = 1/2 and 3/4; for large logits, the loss is linear in the logit.
  std::vector<double> expected{std::log(2.0), -(0.25 * std::log(0.75) + 0.75 * std::log(0.25)), 0,
                               1000};
  std::vector<double> got =
      interpret(binary_cross_entropy(x, targets, LossReduction::kNone)).to_vector<double>();
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(got[i], expected[i], 1e-12) << i;
  EXPECT_EQ(binary_cross_entropy(input({4}, DType::bf16), input({4}, DType::bool_)).type(),
            (TensorType{DType::f32, {}}));
}

TEST(CrossEntropy, ErrorsOfOptions) {
  Tensor x = input({4, 8}), numbers = input({4}, DType::i32);
  EXPECT_TRUE(throws_error([&] { cross_entropy(x, numbers, {.label_smoothing = 1.5}); },
                           ErrorCode::kInvalidArgument, {"cross_entropy_test.cc:", "1.5"}));
  EXPECT_TRUE(throws_error([&] { cross_entropy(x, x, {.ignored = 3}); },
                           ErrorCode::kInvalidArgument, {"class 3", "f32[4,8]"}));
  EXPECT_TRUE(throws_error([&] { binary_cross_entropy(x, numbers); }, ErrorCode::kInvalidArgument,
                           {"i32[4]", "f32[4,8]"}));
}

}  // namespace
}  // namespace meshard

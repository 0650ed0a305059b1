#include "meshard/ops/composite/norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "meshard/ops/movement.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(LayerNorm, OfKnownNumbers) {
  // Mean 2 and variance 1 in each row: without epsilon, -1 and 1.
  Tensor x = from_host<double>({1, 3, 3, 1}, {2, 2});
  Tensor y = layer_norm(x, from_host<double>({2, 3}, {2}), 1.0, 0.0);
  EXPECT_EQ(interpret(y), HostArray::from_vector<double>({-1, 4, 3, -2}, {2, 2}));
  EXPECT_NEAR(interpret(layer_norm(x)).at<double>({0, 1}), 1 / std::sqrt(1 + 1e-5), 1e-12);
}

TEST(LayerNorm, KeepsTheDtype) {
  EXPECT_EQ(layer_norm(input({4, 8}, DType::bf16), input({8}), input({8})).dtype(), DType::bf16);
}

void expect_close(const Tensor& got, const std::vector<double>& expected) {
  std::vector<double> values = interpret(got).to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-12) << i;
}

TEST(RmsNorm, DividesByTheRootOfTheMeanSquare) {
  Tensor x = from_host<double>({1, 7, 3, 1}, {2, 2});  // mean squares 25 and 5
  double root = std::sqrt(5.0);
  expect_close(rms_norm(x, 0.0), {0.2, 1.4, 3 / root, 1 / root});
  expect_close(rms_norm(x, from_host<double>({10, 100}, {2}), 0.0),
               {2, 140, 30 / root, 100 / root});
  expect_close(rms_norm(x, 11.0), {1.0 / 6, 7.0 / 6, 3.0 / 4, 1.0 / 4});
  EXPECT_EQ(rms_norm(input({4, 8}, DType::bf16), input({8})).dtype(), DType::bf16);
}

TEST(GroupNorm, EachGroupOfEachSampleHasItsOwnMean) {
  // Two samples of one pixel and four channels in two groups, with means 2 and 5 and deviation 1.
  Tensor x = from_host<double>({1, 3, 4, 6, 3, 1, 6, 4}, {2, 1, 4});
  Tensor scale = from_host<double>({1, 2, 3, 4}, {4}), bias = from_host<double>({0, 0, 0, 1}, {4});
  expect_close(group_norm(x, scale, bias, 2, 0.0), {-1, 2, -3, 5, 1, -2, 3, -3});
  // The same with channels in dimension 1.
  expect_close(group_norm(permute_dims(x, {0, 2, 1}), scale, bias, 2, 0.0, 1),
               {-1, 2, -3, 5, 1, -2, 3, -3});
  // Pixels count too: one group has two pixels and one channel.
  Tensor pixels = from_host<double>({1, 3}, {1, 2, 1}), one = from_host<double>({1}, {1});
  expect_close(group_norm(pixels, one, from_host<double>({0}, {1}), 1, 0.0), {-1, 1});
}

TEST(BatchNorm, EachChannelHasItsMeanOverTheBatch) {
  Tensor x = from_host<double>({1, 10, 3, 30}, {2, 2});
  Tensor scale = from_host<double>({1, 2}, {2}), bias = from_host<double>({0, 5}, {2});
  BatchNorm norm = batch_norm(x, scale, bias, 0.0);
  expect_close(norm.mean, {2, 20});
  expect_close(norm.variance, {1, 100});
  expect_close(norm.result, {-1, 3, 1, 7});
  Tensor kept = from_host<double>({0, 10}, {2}), variance = from_host<double>({4, 25}, {2});
  expect_close(batch_norm(x, scale, bias, kept, variance, 0.0), {0.5, 5, 1.5, 13});
}

TEST(Norm, Errors) {
  Tensor x = input({2, 5, 6}), six = input({6}), five = input({5});
  EXPECT_TRUE(throws_error([&] { group_norm(x, six, six, 4); }, ErrorCode::kInvalidArgument,
                           {"norm_test.cc:", "6 channels", "4 groups"}));
  EXPECT_TRUE(throws_error([&] { group_norm(x, five, six, 2); }, ErrorCode::kInvalidArgument,
                           {"scale is f32[5]", "6 channels", "f32[2,5,6]"}));
  EXPECT_TRUE(throws_error([&] { group_norm(x, six, six, 1, 1e-5, 0); },
                           ErrorCode::kInvalidArgument, {"dimension 0"}));
  EXPECT_TRUE(throws_error([&] { batch_norm(x, six, five); }, ErrorCode::kInvalidArgument,
                           {"[batch_norm] bias is f32[5]"}));
}

}  // namespace
}  // namespace meshard

#include "meshard/explain/value_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace meshard {
namespace {

using stablehlo::Module;

HostArray floats(std::vector<float> values) { return HostArray::from_vector(std::move(values)); }

// Two shards of a value of four elements, the second on device 5.
std::vector<HeldShard> halves(const HostArray& value) {
  Box first(1), second(1);
  first[0] = {0, 2};
  second[0] = {2, 4};
  return {{1, first, value.slice(first)}, {5, second, value.slice(second)}};
}

TEST(ValueCheck, TheFarthestElement) {
  ValueDistance found = farthest(halves(floats({1, 2, 3, 4.5})), floats({1, 2, 3.25, 4}));
  EXPECT_EQ(found.device, 5);
  EXPECT_EQ(found.index, (Dimensions{3}));
  EXPECT_EQ(found.got, 4.5);
  EXPECT_EQ(found.expected, 4);
  EXPECT_EQ(found.ulps, std::ldexp(0.5, 21));  // numbers from 4 to 8 are 2^-21 apart
  EXPECT_EQ(farthest(halves(floats({1, 2, 3, 4})), floats({1, 2, 3, 4})).ulps, 0);
}

TEST(ValueCheck, IntegersAndNaN) {
  const double infinite = std::numeric_limits<double>::infinity();
  // f64 holds neither of these two integers.
  const std::int64_t large = (std::int64_t{1} << 60) + 1;
  HostArray one = HostArray::from_vector(std::vector<std::int64_t>{1, large, 3, 4});
  HostArray other = HostArray::from_vector(std::vector<std::int64_t>{1, large + 1, 3, 4});
  EXPECT_EQ(farthest(halves(one), other).ulps, infinite);
  EXPECT_EQ(farthest(halves(one), one).ulps, 0);
  const float nan = std::nanf("");
  EXPECT_EQ(farthest(halves(floats({nan, 2, 3, 4})), floats({nan, 2, 3, 4})).ulps, 0);
  EXPECT_EQ(farthest(halves(floats({nan, 2, 3, 4})), floats({1, 2, 3, 4})).ulps, infinite);
}

TEST(ValueCheck, WhatIsAllowed) {
  HostArray expected = floats({1, 2, 3, 4}), got = floats({1, 2, 3, 4.5});
  EXPECT_FALSE(is_near(halves(got), expected, {.absolute = 0.25}));
  EXPECT_TRUE(is_near(halves(got), expected, {.absolute = 0.5}));
  // The elements that rounding changes may differ, or, after a sum, all of them.
  AllowedDistance last{.perturbed = {floats({1, 2, 3, 4.25})}},
      first{.perturbed = {floats({1.25, 2, 3, 4})}};
  EXPECT_TRUE(is_near(halves(got), expected, last));
  EXPECT_FALSE(is_near(halves(got), expected, first));
  first.mixes_elements = true;
  EXPECT_TRUE(is_near(halves(got), expected, first));
  const auto integers = [](std::vector<std::int32_t> values) {
    return HostArray::from_vector(std::move(values));
  };
  AllowedDistance flips{.perturbed = {integers({0, 1, 1, 1})}};
  EXPECT_TRUE(is_near(halves(integers({9, 1, 1, 1})), integers({1, 1, 1, 1}), flips));
  EXPECT_FALSE(is_near(halves(integers({1, 9, 1, 1})), integers({1, 1, 1, 1}), flips));
}

TEST(ValueCheck, Perturbed) {
  HostArray value = floats({1, -2, 1024, 0}), up = perturbed(value, 6), down = perturbed(value, 7);
  for (std::size_t i = 0; i < 4; ++i) {
    float x = value.data<float>()[i], a = up.data<float>()[i], b = down.data<float>()[i];
    if (x == 0) continue;
    EXPECT_NE(a, x);
    EXPECT_NE(b, x);
    EXPECT_LT((a - x) * (b - x), 0);
    EXPECT_LE(std::abs(a - x), std::abs(x) * std::ldexp(1, -23));
  }
  HostArray integers = HostArray::from_vector(std::vector<std::int32_t>{1, 2});
  EXPECT_EQ(perturbed(integers, 3), integers);
}

TEST(ValueCheck, SumsOfOps) {
  Module module = Module::parse(R"(module {
  func.func @main(%arg0: tensor<8x128xf32>, %arg1: tensor<128x16xf32>) -> tensor<8x16xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x128xf32>, tensor<128x16xf32>) -> tensor<8x16xf32>
    %cst = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<8x128xf32>, tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.tanh %0 : tensor<8x16xf32>
    %3 = call @f(%arg0, %arg1) : (tensor<8x128xf32>, tensor<128x16xf32>) -> tensor<8x16xf32>
    return %2 : tensor<8x16xf32>
  }
  func.func private @f(%arg0: tensor<8x128xf32>, %arg1: tensor<128x16xf32>) -> tensor<8x16xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x128xf32>, tensor<128x16xf32>) -> tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
})")
                      .value();
  const std::vector<stablehlo::ModuleOp>& ops = module.function("main")->op->regions[0].ops;
  EXPECT_EQ(sums_of(module, ops[0]).terms, 128);
  EXPECT_TRUE(sums_of(module, ops[0]).is_product);
  EXPECT_EQ(sums_of(module, ops[2]).terms, 128);
  EXPECT_EQ(sums_of(module, ops[3]).terms, 1);
  EXPECT_GE(sums_of(module, ops[4]).terms, 128);
  EXPECT_TRUE(sums_of(module, ops[4]).has_bodies);
}

}  // namespace
}  // namespace meshard

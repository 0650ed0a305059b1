#include "meshard/ops/composite/repetition.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

Tensor counted(Shape shape) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.size(); ++i) values.push_back(static_cast<float>(i));
  return from_host(std::move(values), std::move(shape));
}
HostArray floats_in(std::vector<float> values, Shape shape) {
  return HostArray::from_vector(std::move(values), std::move(shape));
}

TEST(Repeat, EachSliceSeveralTimes) {
  Tensor x = counted({2, 2});
  EXPECT_EQ(interpret(repeat(x, 2, 0)), floats_in({0, 1, 0, 1, 2, 3, 2, 3}, {4, 2}));
  EXPECT_EQ(interpret(repeat(x, 2, 1)), floats_in({0, 0, 1, 1, 2, 2, 3, 3}, {2, 4}));
  EXPECT_EQ(interpret(repeat(x, 2)), floats_in({0, 0, 1, 1, 2, 2, 3, 3}, {8}));
  EXPECT_EQ(interpret(repeat(x, Dimensions{2, 1}, 1)), floats_in({0, 0, 1, 2, 2, 3}, {2, 3}));
  EXPECT_EQ(interpret(repeat(x, Dimensions{0, 1, 0, 2})), floats_in({1, 3, 3}, {3}));
  EXPECT_EQ(repeat(x, 0, 0).shape(), (Shape{0, 2}));
  EXPECT_EQ(repeat(x, Dimensions{0, 0}, 0).shape(), (Shape{0, 2}));
}

TEST(Tile, TheWholeSeveralTimes) {
  EXPECT_EQ(interpret(tile(counted({2, 2}), {1, 2})), floats_in({0, 1, 0, 1, 2, 3, 2, 3}, {2, 4}));
  EXPECT_EQ(interpret(tile(counted({2}), {2, 2})), floats_in({0, 1, 0, 1, 0, 1, 0, 1}, {2, 4}));
  EXPECT_EQ(interpret(tile(counted({2, 1}), {3})), floats_in({0, 0, 0, 1, 1, 1}, {2, 3}));
  EXPECT_EQ(tile(counted({2, 3}), {0, 1}).shape(), (Shape{0, 3}));
}

TEST(Roll, WhatLeavesComesBack) {
  EXPECT_EQ(interpret(roll(counted({5}), 2, 0)), floats_in({3, 4, 0, 1, 2}, {5}));
  EXPECT_EQ(interpret(roll(counted({5}), -7, 0)), floats_in({2, 3, 4, 0, 1}, {5}));
  EXPECT_EQ(interpret(roll(counted({2, 3}), 1)), floats_in({5, 0, 1, 2, 3, 4}, {2, 3}));
  EXPECT_EQ(interpret(roll(counted({2, 3}), {1, 1}, {0, 1})),
            floats_in({5, 3, 4, 2, 0, 1}, {2, 3}));
  EXPECT_EQ(interpret(roll(counted({2, 3}), {1, 1}, {1, 1})),
            floats_in({1, 2, 0, 4, 5, 3}, {2, 3}));
  EXPECT_EQ(roll(counted({0, 3}), 1, 0).shape(), (Shape{0, 3}));
}

TEST(Meshgrid, InBothOrders) {
  Tensor x = from_host<float>({1, 2, 3}, {3}), y = from_host<float>({10, 20}, {2});
  std::vector<Tensor> xy = meshgrid({x, y}), ij = meshgrid({x, y}, GridOrder::kIj);
  EXPECT_EQ(interpret(xy[0]), floats_in({1, 2, 3, 1, 2, 3}, {2, 3}));
  EXPECT_EQ(interpret(xy[1]), floats_in({10, 10, 10, 20, 20, 20}, {2, 3}));
  EXPECT_EQ(interpret(ij[0]), floats_in({1, 1, 2, 2, 3, 3}, {3, 2}));
  EXPECT_EQ(interpret(ij[1]), floats_in({10, 20, 10, 20, 10, 20}, {3, 2}));
  EXPECT_EQ(meshgrid({x, y, x})[2].shape(), (Shape{2, 3, 3}));
  EXPECT_EQ(meshgrid({x}).size(), 1u);
  EXPECT_TRUE(meshgrid({}).empty());
}

TEST(BroadcastArrays, ToOneShape) {
  EXPECT_EQ(broadcast_shapes({{2, 1}, {3}, {1, 1, 1}}), (Shape{1, 2, 3}));
  EXPECT_EQ(broadcast_shapes({{0}, {1}}), Shape{0});
  EXPECT_EQ(broadcast_shapes({}), Shape{});
  std::vector<Tensor> both = broadcast_arrays({counted({2, 1}), counted({2})});
  EXPECT_EQ(interpret(both[0]), floats_in({0, 0, 1, 1}, {2, 2}));
  EXPECT_EQ(interpret(both[1]), floats_in({0, 1, 0, 1}, {2, 2}));
}

TEST(Repetition, Errors) {
  auto fails = [](auto call, std::vector<std::string> parts) {
    return throws_error(call, ErrorCode::kInvalidArgument, parts);
  };
  EXPECT_TRUE(fails([] { repeat(input({2}), -1); }, {"repetition_test.cc:", "-1 repetitions"}));
  EXPECT_TRUE(fails(
      [] {
        repeat(input({2, 3}), Dimensions{1, 2}, 1);
      },
      {"2 numbers", "dimension 1 = 3", "f32[2,3]"}));
  EXPECT_TRUE(fails([] { tile(input({2}), {-2}); }, {"[tile] -2"}));
  EXPECT_TRUE(fails([] { roll(input({2}), {1, 2}, {0}); }, {"2 shifts for 1 dimensions"}));
  EXPECT_TRUE(fails([] { meshgrid({input({2}), input({2, 2})}); }, {"vector 1 is f32[2,2]"}));
  EXPECT_TRUE(fails(
      [] {
        broadcast_shapes({{2, 3}, {1}, {2}});
      },
      {"repetition_test.cc:", "shape 0 = [2, 3]", "shape 2 = [2]", "3 and 2"}));
}

}  // namespace
}  // namespace meshard

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

Tensor numbers(Shape shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return from_host(values, shape);
}

TEST(Stack, PutsTensorsSideBySide) {
  Tensor a = numbers({2}), b = from_host<float>({5, 6}, {2});
  EXPECT_EQ(interpret(stack({a, b}, 1)), HostArray::from_vector<float>({0, 5, 1, 6}, {2, 2}));
  EXPECT_EQ(interpret(stack({a, b})), HostArray::from_vector<float>({0, 1, 5, 6}, {2, 2}));
}

TEST(Stack, SplitCutsIntoParts) {
  auto parts = split(numbers({2, 4}), 2, -1);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(interpret(parts[1]), HostArray::from_vector<float>({2, 3, 6, 7}, {2, 2}));
  parts = split_sizes(numbers({6}), {1, 0, 5});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1].shape(), Shape{0});
  EXPECT_EQ(interpret(parts[2]), HostArray::from_vector<float>({1, 2, 3, 4, 5}));
}

TEST(Stack, UnstackUndoesIt) {
  Tensor x = numbers({2, 3});
  std::vector<Tensor> columns = unstack(x, 1);
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_EQ(interpret(columns[2]), HostArray::from_vector<float>({2, 5}));
  EXPECT_EQ(interpret(stack(unstack(x))), interpret(x));
  EXPECT_TRUE(unstack(input({0, 3})).empty());
}

TEST(Stack, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        stack({input({2}), input({3})});
      },
      ErrorCode::kInvalidArgument, {"rearrange_test.cc:", "f32[2]", "f32[3]"}));
  EXPECT_TRUE(throws_error([] { split(input({7}), 2); }, ErrorCode::kInvalidArgument,
                           {"dimension 0 = 7", "2 equal parts"}));
  EXPECT_TRUE(throws_error(
      [] {
        split_sizes(input({7}), {3, 3});
      },
      ErrorCode::kInvalidArgument, {"add up to 6", "is 7"}));
}

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
  EXPECT_TRUE(fails([] { repeat(input({2}), -1); }, {"rearrange_test.cc:", "-1 repetitions"}));
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
      {"rearrange_test.cc:", "shape 0 = [2, 3]", "shape 2 = [2]", "3 and 2"}));
}

}  // namespace
}  // namespace meshard

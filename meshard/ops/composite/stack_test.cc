#include "meshard/ops/composite/stack.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

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
      ErrorCode::kInvalidArgument, {"stack_test.cc:", "f32[2]", "f32[3]"}));
  EXPECT_TRUE(throws_error([] { split(input({7}), 2); }, ErrorCode::kInvalidArgument,
                           {"dimension 0 = 7", "2 equal parts"}));
  EXPECT_TRUE(throws_error(
      [] {
        split_sizes(input({7}), {3, 3});
      },
      ErrorCode::kInvalidArgument, {"add up to 6", "is 7"}));
}

}  // namespace
}  // namespace meshard

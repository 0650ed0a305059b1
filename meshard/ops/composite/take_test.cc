#include "meshard/ops/composite/take.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/composite/operators.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Take, Types) {
  Tensor x = input({4, 8, 2});
  EXPECT_EQ(take(x, input({3, 5}, DType::i32), 1).shape(), (Shape{4, 3, 5, 2}));
  EXPECT_EQ(take(x, 1, -1).shape(), (Shape{4, 8}));
  EXPECT_EQ(take_along_axis(x, input({4, 3, 2}, DType::i64), 1).shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(take_along_axis(input({1, 8}), input({4, 1}, DType::i32)).shape(), (Shape{4, 1}));
}

TEST(Take, KnownIndicesAreChecked) {
  Tensor x = from_host<float>({0, 1, 2}, {3});
  auto refused = [](std::string index, auto call) {
    EXPECT_TRUE(throws_error([&] { (void)call(); }, ErrorCode::kOutOfRange,
                             {index, "size 3", "take_test.cc:"}));
  };
  refused("5", [&] { return take(x, from_host<std::int32_t>({-1, 5}, {2})); });
  refused("-4", [&] { return take(x, -4); });
  refused("9", [&] { return take(x, full({2, 1}, 9)); });
  refused("200", [&] { return take(x, from_host<std::uint8_t>({200}, {1})); });
  refused("3", [&] { return take_along_axis(x, from_host<std::int64_t>({3}, {1})); });
  EXPECT_EQ(interpret(take(x, from_host<std::int32_t>({-1, -3}, {2}))),
            HostArray::from_vector<float>({2, 0}));
  // A computed index is clamped after it was counted from the end.
  Tensor computed = from_host<std::int32_t>({-1, 5, -9}, {3}) + 0;
  EXPECT_EQ(interpret(take(x, computed)), HostArray::from_vector<float>({2, 2, 0}));
}

TEST(Take, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        take(input({0, 4}), input({2}, DType::i32));
      },
      ErrorCode::kInvalidArgument, {"take_test.cc:", "f32[0,4]", "empty"}));
  EXPECT_TRUE(throws_error(
      [] {
        take_along_axis(input({4, 8}), input({3, 1}, DType::i32));
      },
      ErrorCode::kInvalidArgument, {"dimension 0 = 4", "dimension 0 = 3"}));
  EXPECT_TRUE(throws_error(
      [] {
        take_along_axis(input({4, 8}), input({4}, DType::i32));
      },
      ErrorCode::kInvalidArgument, {"f32[4,8]", "i32[4]"}));
}

TEST(OneHot, PutsAOneAtEachIndex) {
  Tensor indices = from_host<std::int32_t>({2, 0, 3, -1}, {2, 2});
  EXPECT_EQ(interpret(one_hot(indices, 3)),
            HostArray::from_vector<float>({0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}, {2, 2, 3}));
}

TEST(OneHot, NarrowIndicesReachEveryClass) {
  Tensor hot = one_hot(from_host<std::uint8_t>({4}, {1}), 300, DType::i32);
  std::vector<std::int32_t> values = interpret(hot).to_vector<std::int32_t>();
  // 260 is 4 in eight bits.
  EXPECT_EQ(values[4], 1);
  EXPECT_EQ(values[260], 0);
}

TEST(OneHot, WantsIntegers) {
  EXPECT_TRUE(throws_error([] { one_hot(from_host<float>({1}, {1}), 3); },
                           ErrorCode::kInvalidArgument,
                           {"take_test.cc", "[one_hot] indices must be integers, not f32[1]"}));
  EXPECT_TRUE(throws_error([] { one_hot(from_host<std::int32_t>({1}, {1}), -3); },
                           ErrorCode::kInvalidArgument, {"classes = -3"}));
}

}  // namespace
}  // namespace meshard

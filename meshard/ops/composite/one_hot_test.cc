#include "meshard/ops/composite/one_hot.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

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
                           {"one_hot_test.cc", "[one_hot] indices must be integers, not f32[1]"}));
  EXPECT_TRUE(throws_error([] { one_hot(from_host<std::int32_t>({1}, {1}), -3); },
                           ErrorCode::kInvalidArgument, {"classes = -3"}));
}

}  // namespace
}  // namespace meshard

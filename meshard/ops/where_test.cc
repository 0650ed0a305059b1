#include "meshard/ops/where.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
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
                           {"where_test.cc", "[where]", "bools, not f32", "not_equal(x, 0)"}));
  Tensor condition = from_host(HostArray::from_vector<bool>({true, false, true}));
  EXPECT_TRUE(throws_error([&] { where(condition, x, 0); }, ErrorCode::kInvalidArgument,
                           {"[where]", "[3]", "[2]"}));
}

}  // namespace
}  // namespace meshard

#include "meshard/ops/collective_permute.h"

#include <gtest/gtest.h>

#include "meshard/ops/manual_testutil.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Members = std::vector<std::int64_t>;

const CollectivePermuteAttributes& pairs_of(const Tensor& tensor) {
  return tensor.value()->attributes_as<CollectivePermuteAttributes>();
}

TEST(CollectivePermute, SendsBetweenMembersOfAGroup) {
  EXPECT_EQ(
      emitted(collective_permute(local_input({2}), "x", {{0, 1}})),
      R"(%0 = "stablehlo.collective_permute"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>}> : (tensor<2xf32>) -> tensor<2xf32>)");
}

TEST(CollectivePermute, TheCotangentGoesBack) {
  Tensor y = collective_permute(local_input({2}), "x", {{0, 1}});
  Tensor back = recorded_vjp(y, y)[0];
  EXPECT_EQ(pairs_of(back).sources, Members{1});
  EXPECT_EQ(pairs_of(back).targets, Members{0});
}

TEST(CollectivePermute, ARingGoesAroundInBothDirections) {
  Tensor x = local_input({2});
  EXPECT_EQ(pairs_of(ring_shift(x, {"x", "y"})).targets, (Members{1, 2, 3, 0}));
  EXPECT_EQ(pairs_of(ring_shift(x, {"x", "y"}, -1)).targets, (Members{3, 0, 1, 2}));
  EXPECT_EQ(pairs_of(ring_shift(x, {"x", "y"}, 6)).targets, (Members{2, 3, 0, 1}));
  EXPECT_EQ(varying(ring_shift(x, {"x", "y"})), R"({"x", "y"})");
}

TEST(CollectivePermute, Errors) {
  Tensor x = local_input({2});
  auto send = [&](std::vector<std::pair<std::int64_t, std::int64_t>> pairs) {
    return [&x, pairs] { collective_permute(x, "x", pairs); };
  };
  EXPECT_TRUE(throws_error(send({{0, 2}}), ErrorCode::kInvalidArgument,
                           {"[collective_permute]", "target 2 is outside 0..1"}));
  EXPECT_TRUE(throws_error(send({{-1, 0}}), ErrorCode::kInvalidArgument, {"source -1"}));
  EXPECT_TRUE(throws_error(send({{0, 1}, {1, 1}}), ErrorCode::kInvalidArgument,
                           {"member 1 appears twice as target"}));
}

}  // namespace
}  // namespace meshard

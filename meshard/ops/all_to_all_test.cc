#include "meshard/ops/all_to_all.h"

#include <gtest/gtest.h>

#include "meshard/ops/manual_testutil.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(AllToAll, SplitsOneDimensionAndGrowsAnother) {
  Tensor x = local_input({4, 6});
  Tensor y = all_to_all(x, "x", 0, -1);
  EXPECT_EQ(y.shape(), (Shape{2, 12}));
  EXPECT_EQ(varying(y), R"({"x"})");
  EXPECT_EQ(all_to_all(x, "x", 0, 0).shape(), (Shape{4, 6}));
  Tensor back = recorded_vjp(y, y)[0];
  EXPECT_EQ(back.value()->op().name, "all_to_all");
}

TEST(AllToAll, IsWrittenWithItsGroups) {
  EXPECT_EQ(
      emitted(all_to_all(local_input({2, 4}), "x", 1, 0)),
      R"(%0 = "stablehlo.all_to_all"(%arg0) <{split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>}> : (tensor<2x4xf32>) -> tensor<4x2xf32>)");
}

TEST(AllToAll, Errors) {
  Tensor x = local_input({3, 4});
  EXPECT_TRUE(throws_error([&] { all_to_all(x, "x", 0, 1); }, ErrorCode::kInvalidArgument,
                           {"[all_to_all]", "f32[3,4]", "is not divisible by the 2 devices"}));
  EXPECT_TRUE(
      throws_error([&] { all_to_all(x, "x", 2, 0); }, ErrorCode::kOutOfRange, {"all_to_all"}));
}

}  // namespace
}  // namespace meshard

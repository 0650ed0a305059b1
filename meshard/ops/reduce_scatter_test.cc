#include "meshard/ops/reduce_scatter.h"

#include <gtest/gtest.h>

#include "meshard/ops/manual_testutil.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(ReduceScatter, KeepsAPartOfTheSum) {
  Tensor x = local_input({4, 6});
  EXPECT_EQ(reduce_scatter(x, "x", 0).shape(), (Shape{2, 6}));
  EXPECT_EQ(reduce_scatter(x, {"x", "y"}, 0).shape(), (Shape{1, 6}));
  EXPECT_EQ(varying(reduce_scatter(x, "x", -1)), R"({"x"})");
  Tensor back = recorded_vjp(reduce_scatter(x, "x", 0), reduce_scatter(x, "x", 0))[0];
  EXPECT_EQ(back.value()->op().name, "all_gather");
}

TEST(ReduceScatter, IsWrittenWithItsGroups) {
  EXPECT_EQ(
      emitted(reduce_scatter(local_input({2, 4}), "x", 1)),
      R"(%0 = "stablehlo.reduce_scatter"(%arg0) <{scatter_dimension = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
%t0 = stablehlo.add %b0, %b1 : tensor<f32>
stablehlo.return %t0 : tensor<f32>
}) : (tensor<2x4xf32>) -> tensor<2x2xf32>)");
}

TEST(ReduceScatter, Errors) {
  EXPECT_TRUE(throws_error([] { reduce_scatter(local_input({3}), "x"); },
                           ErrorCode::kInvalidArgument,
                           {"[reduce_scatter]", "f32[3]", "is not divisible by the 2 devices"}));
  EXPECT_TRUE(throws_error([] { reduce_scatter(local_input({2}, DType::bool_), "x"); },
                           ErrorCode::kInvalidArgument, {"bool[2]"}));
}

}  // namespace
}  // namespace meshard

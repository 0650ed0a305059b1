#include "meshard/ops/all_gather.h"

#include <gtest/gtest.h>

#include "meshard/ops/manual_testutil.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(AllGather, PutsTheLocalValuesOneBehindTheOther) {
  Tensor x = local_input({2, 3});
  Tensor rows = all_gather(x, "x", 0), columns = all_gather(x, {"x", "y"}, -1);
  EXPECT_EQ(rows.shape(), (Shape{4, 3}));
  EXPECT_EQ(columns.shape(), (Shape{2, 12}));
  EXPECT_EQ(varying(rows), R"({"x"})");
  EXPECT_EQ(varying(columns), R"({"x", "y"})") << "x was widened over y";
  EXPECT_EQ(varying(all_gather_invariant(x, "x", 0)), "{}");
}

TEST(AllGather, IsWrittenWithItsGroups) {
  EXPECT_EQ(
      emitted(all_gather(local_input({2, 3}), "x", 1)),
      R"(%0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<2x3xf32>) -> tensor<2x6xf32>)");
}

TEST(AllGather, CotangentsAreSummedAndScatteredOrTaken) {
  Tensor x = local_input({2, 3});
  Tensor varies = all_gather(x, "x", 0), same = all_gather_invariant(x, "x", 0);
  EXPECT_EQ(recorded_vjp(varies, varies)[0].value()->op().name, "reduce_scatter");
  Tensor own = recorded_vjp(same, same)[0];
  EXPECT_EQ(own.shape(), (Shape{2, 3}));
  EXPECT_EQ(varying(own), R"({"x"})");
}

TEST(AllGather, Errors) {
  Tensor x = local_input({2, 3});
  EXPECT_TRUE(throws_error([&] { all_gather(x, "x", 2); }, ErrorCode::kOutOfRange,
                           {"[all_gather]", "all_gather_test.cc:"}));
  EXPECT_TRUE(throws_error([&] { all_gather(input({2}), "x"); }, ErrorCode::kInvalidArgument,
                           {"is a full value"}));
  EXPECT_TRUE(throws_error([&] { all_gather_invariant(x, AxisRef("x", 1, 2)); },
                           ErrorCode::kInvalidArgument, {"is a part of an axis"}));
}

}  // namespace
}  // namespace meshard

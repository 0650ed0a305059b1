#include "meshard/ops/all_reduce.h"

#include <gtest/gtest.h>

#include "meshard/graph/record.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/composite/manual.h"
#include "meshard/ops/internal/collective.h"
#include "meshard/ops/manual_testutil.h"
#include "meshard/ops/vary.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
using namespace internal;
namespace {

TEST(AllReduce, NoLongerVaries) {
  Tensor x = vary(local_input({2, 3}), "y");
  EXPECT_EQ(varying(x), R"({"x", "y"})");
  EXPECT_EQ(varying(all_reduce(x, "x")), R"({"y"})");
  EXPECT_EQ(varying(all_reduce(x, {"y", "x"})), "{}");
  EXPECT_EQ(all_reduce(x, "x").shape(), (Shape{2, 3}));
}

TEST(AllReduce, OverAPartOfAnAxisStillVaries) {
  Mesh mesh({{"x", 4}});
  Tensor x = full_to_shard(input({8}), Sharding(mesh, P("x")), AxisSet::all(mesh));
  Tensor pairs = all_reduce(x, AxisRef("x", 1, 2));
  EXPECT_EQ(varying(pairs), R"({"x"})");
  // Each result depends on both operands of its pair.
  EXPECT_EQ(recorded_vjp(pairs, x)[0].value()->op().name, "all_reduce");
}

TEST(AllReduce, IsWrittenWithItsGroups) {
  EXPECT_EQ(
      emitted(all_reduce(local_input({2}), "x")),
      R"(%0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
%t0 = stablehlo.add %b0, %b1 : tensor<f32>
stablehlo.return %t0 : tensor<f32>
}) : (tensor<2xf32>) -> tensor<2xf32>)");
}

TEST(AllReduce, WhatDoesNotVaryIsAnError) {
  Tensor x = local_input({2});
  EXPECT_TRUE(throws_error(
      [&] { all_reduce(x, "y"); }, ErrorCode::kInvalidArgument,
      {"[all_reduce]", R"(does not vary over {"y"})", "vary()", "all_reduce_test.cc:"}));
  EXPECT_TRUE(throws_error([&] { all_reduce(x, "z"); }, ErrorCode::kInvalidArgument,
                           {R"(axis "z" is not manual here)", "mesh<x=2, y=2>"}));
  EXPECT_TRUE(throws_error(
      [&] {
        all_reduce(x, {"x", "x"});
      },
      ErrorCode::kInvalidArgument, {"overlap"}));
  EXPECT_TRUE(throws_error([&] { all_reduce(input({2}), "x"); }, ErrorCode::kInvalidArgument,
                           {"is a full value", "manual()"}));
  EXPECT_TRUE(throws_error([&] { all_reduce(local_input({2}, DType::bool_), "x"); },
                           ErrorCode::kInvalidArgument, {"sum", "bool[2]", "any"}));
}

TEST(AllReduce, FreeValuesBelongToTheFunctionRecorded) {
  Mesh mesh({{"x", 2}});
  manual(mesh, SpecList{}, P(), [] {
    EXPECT_TRUE(throws_error([] { all_reduce(ones({2}), "x"); }, ErrorCode::kInvalidArgument,
                             {"does not vary"}));
    return all_reduce(vary(ones({2}), "x"), "x");
  })();
}

TEST(AllReduce, TheCotangentOfASumIsWidened) {
  Tensor x = local_input({2});
  Tensor sum = all_reduce(x, "x");
  Tensor back = recorded_vjp(sum, sum)[0];
  EXPECT_EQ(back.value()->op().name, "vary");
  EXPECT_EQ(varying(back), R"({"x"})");
}

// Functions that all collectives share.
TEST(Collective, GroupsFollowTheOrderOfAxesAndDevices) {
  using collective::logical_groups;
  using Groups = std::vector<std::vector<std::int64_t>>;
  Mesh mesh({{"x", 2}, {"y", 3}});
  EXPECT_EQ(logical_groups(mesh, {"y"}, mesh), (Groups{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(logical_groups(mesh, {"x", "y"}, mesh), (Groups{{0, 1, 2, 3, 4, 5}}));
  EXPECT_EQ(logical_groups(mesh, {"y", "x"}, mesh), (Groups{{0, 3, 1, 4, 2, 5}}));
  // The program numbers the same devices backward.
  Mesh back({{"z", 6}}, {5, 4, 3, 2, 1, 0});
  EXPECT_EQ(logical_groups(mesh, {"x"}, back), (Groups{{5, 2}, {4, 1}, {3, 0}}));
  Mesh eight({{"x", 8}});
  EXPECT_EQ(logical_groups(eight, {AxisRef("x", 2, 2)}, eight),
            (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
}

}  // namespace
}  // namespace meshard

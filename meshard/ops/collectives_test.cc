#include "meshard/ops/collectives.h"

#include <gtest/gtest.h>

#include "meshard/graph/record.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/composite/manual.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/internal/collective.h"
#include "meshard/ops/manual_testutil.h"
#include "meshard/ops/manual_values.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
using namespace internal;
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
                           {"[all_gather]", "collectives_test.cc:"}));
  EXPECT_TRUE(throws_error([&] { all_gather(input({2}), "x"); }, ErrorCode::kInvalidArgument,
                           {"is a full value"}));
  EXPECT_TRUE(throws_error([&] { all_gather_invariant(x, AxisRef("x", 1, 2)); },
                           ErrorCode::kInvalidArgument, {"is a part of an axis"}));
}

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
      {"[all_reduce]", R"(does not vary over {"y"})", "vary()", "collectives_test.cc:"}));
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

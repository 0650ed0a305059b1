#include <gtest/gtest.h>

#include "meshard/explain/explain.h"
#include "meshard/explain/hlo_testutil.h"
#include "meshard/explain/predict/predict.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/composite/mark_sharding.h"

namespace meshard {
namespace {

using Kind = CollectiveKind;

const bool kPlanInstalled = install_runtime();
const Mesh kPlanMesh({{"data", 2}, {"model", 4}});
const TensorType kType{DType::f32, {32, 48}};  // 6,144 bytes

ReshardPlan plan(const PartitionSpec& from, const PartitionSpec& to) {
  return plan_reshard(kType, Sharding(kPlanMesh, from), Sharding(kPlanMesh, to));
}

// Calculated by hand: the most bytes that one device sends or receives, of 6,144 in total.
TEST(ReshardPlan, CutsAreFree) {
  EXPECT_TRUE(plan(P(none, none), P("data", "model")).is_free());
  EXPECT_TRUE(plan(P("data", none), P("data", "model")).is_free());
  EXPECT_TRUE(plan(P("data", none), P(axes("data", "model"), none)).is_free());
  EXPECT_TRUE(plan(P("data", "model"), P("data", "model")).is_free());
}

TEST(ReshardPlan, GathersGiveTheWholeOfADimension) {
  EXPECT_EQ(plan(P(none, "model"), P(none, none)).steps,
            (std::vector<ReshardStep>{{Kind::kAllGather, {"model"}, 6144}}));
  EXPECT_EQ(plan(P("data", "model"), P("data", none)).steps,
            (std::vector<ReshardStep>{{Kind::kAllGather, {"model"}, 3072}}));
  EXPECT_EQ(plan(P("data", "model"), P(none, none)).steps,
            (std::vector<ReshardStep>{{Kind::kAllGather, {"model"}, 3072},
                                      {Kind::kAllGather, {"data"}, 6144}}));
}

TEST(ReshardPlan, AnAxisThatMovesIsAnExchange) {
  EXPECT_EQ(plan(P("model", none), P(none, "model")).steps,
            (std::vector<ReshardStep>{{Kind::kAllToAll, {"model"}, 6144 / 4}}));
  // The moved axis becomes the last of its new dimension; any other order needs a permutation.
  EXPECT_EQ(plan(P("data", "model"), P(axes("data", "model"), none)).steps,
            (std::vector<ReshardStep>{{Kind::kAllToAll, {"model"}, 6144 / 8}}));
  EXPECT_EQ(plan(P("data", "model"), P(axes("model", "data"), none)).steps,
            (std::vector<ReshardStep>{{Kind::kAllToAll, {"model"}, 6144 / 8},
                                      {Kind::kCollectivePermute, {}, 6144 / 8}}));
}

TEST(ReshardPlan, AnotherOrderIsAPermutation) {
  EXPECT_EQ(plan(P(axes("data", "model"), none), P(axes("model", "data"), none)).steps,
            (std::vector<ReshardStep>{{Kind::kCollectivePermute, {}, 6144 / 8}}));
}

TEST(ReshardPlan, WhatCannotBeDoneInPartsIsDoneWithTheWhole) {
  ReshardPlan whole = plan(P("data", none), P(none, "model"));
  EXPECT_TRUE(whole.full_rematerialization);
  EXPECT_EQ(whole.steps, (std::vector<ReshardStep>{{Kind::kAllGather, {"data"}, 6144}}));
  EXPECT_EQ(whole.bytes(), 6144);
  EXPECT_FALSE(plan(P("data", none), P(none, none)).full_rematerialization)
      << "a gather that was asked for";
  // The axes of one dimension move to two dimensions of other sizes.
  TensorType cube{DType::f32, {16, 8, 24}};
  EXPECT_TRUE(plan_reshard(cube, Sharding(kPlanMesh, P(axes("data", "model"), none, none)),
                           Sharding(kPlanMesh, P(none, "data", "model")))
                  .full_rematerialization);
}

// The reference is the collectives that the compiler inserts for a mark.
TEST(ReshardPlan, IsWhatTheCompilerDoes) {
  ASSERT_TRUE(kPlanInstalled);
  if (std::string reason = why_no_plugin(); !reason.empty())
    GTEST_SKIP() << "no CPU plugin: " << reason;
  std::vector<DimensionSpec> dimensions{none, "data", "model", axes("data", "model"),
                                        axes("model", "data")};
  std::vector<Sharding> all;
  for (const DimensionSpec& a : dimensions)
    for (const DimensionSpec& b : dimensions) {
      bool clash = false;
      for (const AxisRef& x : a.axes())
        for (const AxisRef& y : b.axes()) clash = clash || x == y;
      if (!clash) all.emplace_back(kPlanMesh, P(a, b));
    }
  ASSERT_EQ(all.size(), 11u);
  std::size_t number = 0;
  for (const Sharding& from : all)
    for (const Sharding& to : all) {
      if (from == to || number++ % 3 != 0) continue;  // only a third, to save time
      Tensor x = mark_sharding(from_host(HostArray::zeros(kType)), from);
      auto reshard = jit([&](Tensor t) { return mark_sharding(t, to); });
      reshard(x);
      std::vector<std::pair<Kind, std::int64_t>> planned, compiled;
      for (const ReshardStep& step : plan_reshard(kType, from, to).steps)
        planned.emplace_back(step.kind, step.bytes);
      ProgramReport report = explain(reshard);
      for (const Collective& one : report.collectives())
        compiled.emplace_back(one.kind, one.bytes());
      EXPECT_EQ(planned, compiled) << from.to_string() << " to " << to.to_string();
    }
}

}  // namespace
}  // namespace meshard

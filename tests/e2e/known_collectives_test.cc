// Programs with known collectives: explain must report exactly these, as this machine's plugin
// compiles them. Bytes follow from the shapes by the formula in each test.
#include "tests/e2e/known_programs.h"
#include "tests/support/devices.h"

namespace meshard {
namespace {

using testing::ElementsAre;

Tensor placed(Shape shape, const Mesh& mesh, const PartitionSpec& spec) {
  return mark_sharding(from_host(HostArray::zeros({DType::f32, std::move(shape)})), mesh, spec);
}

struct KnownCollectives : OnDevices {
  Mesh mesh{{{"data", 2}, {"model", 4}}};
};

TEST_F(KnownCollectives, ColumnThenRowParallelLayersSumOnce) {
  auto step = jit(known::mlp);
  step(placed({16, 32}, mesh, P("data", none)), placed({32, 64}, mesh, P(none, "model")),
       placed({64, 24}, mesh, P("model", none)));
  ProgramReport report = explain(step);
  ASSERT_EQ(report.collectives().size(), 1u) << report.to_string();
  const Collective& sum = report.collectives()[0];
  EXPECT_EQ(sum.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(sum.axes, AxisList({"model"}));
  EXPECT_EQ(sum.bytes(), 16 / 2 * 24 * known::kBytesOfF32);
  EXPECT_EQ(sum.executions, 1);
  EXPECT_EQ(sum.cause, CollectiveCause::kInserted);
  EXPECT_EQ(sum.origin.to_string(), known::place() + " (exact)");
}

TEST_F(KnownCollectives, FullyShardedTrainingGathersWeightsAndScattersGradients) {
  Mesh all({{"data", 8}});
  auto step = jit(known::gradients);
  step(placed({32, 64}, all, P("data", none)), placed({64, 16}, all, P("data", none)),
       placed({256, 32}, all, P("data", none)));
  ProgramReport report = explain(step);
  std::int64_t v = 32 * 64 * known::kBytesOfF32, w = 64 * 16 * known::kBytesOfF32;
  EXPECT_THAT(known::bytes_of(report, {CollectiveKind::kAllGather}), ElementsAre(w, v))
      << report.to_string();
  // The compiler may combine the sums; the total number of bytes does not change.
  EXPECT_EQ(known::sum(known::bytes_of(report, known::kSums)), v + w) << report.to_string();
  for (const Collective& one : report.collectives()) EXPECT_EQ(one.axes, AxisList({"data"}));
}

TEST_F(KnownCollectives, SequenceParallelLayersGatherBeforeAndSumAfter) {
  Sharding outside(mesh, P("model", none)), whole(mesh, P(none, none));
  auto step = jit(
      [&](Tensor x, Tensor v, Tensor w) { return known::sequence_mlp(x, v, w, outside, whole); });
  step(placed({64, 32}, mesh, P("model", none)), placed({32, 48}, mesh, P(none, "model")),
       placed({48, 32}, mesh, P("model", none)));
  ProgramReport report = explain(step);
  std::int64_t activations = 64 * 32 * known::kBytesOfF32;
  EXPECT_THAT(known::bytes_of(report, {CollectiveKind::kAllGather}), ElementsAre(activations))
      << report.to_string();
  EXPECT_THAT(known::bytes_of(report, known::kSums), ElementsAre(activations))
      << report.to_string();
  for (const Collective& one : report.collectives()) EXPECT_EQ(one.axes, AxisList({"model"}));
}

TEST_F(KnownCollectives, ARingExchangePermutes) {
  auto step = jit([&](Tensor x) {
    return manual(mesh, P("data", "model"), P("data", "model"),
                  [](Tensor local) { return ring_shift(local, "model"); })(x);
  });
  step(placed({16, 32}, mesh, P("data", "model")));
  ProgramReport report = explain(step);
  ASSERT_EQ(report.collectives().size(), 1u) << report.to_string();
  const Collective& one = report.collectives()[0];
  EXPECT_EQ(one.kind, CollectiveKind::kCollectivePermute);
  EXPECT_EQ(one.axes, AxisList({"model"}));
  EXPECT_THAT(one.shifts, ElementsAre(AxisShift{{"model"}, 1, true}));
  EXPECT_EQ(one.bytes(), 16 / 2 * 32 / 4 * known::kBytesOfF32);
  EXPECT_EQ(one.cause, CollectiveCause::kAsked);
}

TEST_F(KnownCollectives, ProgramsOnTwoSubmeshesHaveNothingBetweenThem) {
  Mesh all({{"stage", 2}, {"x", 4}});
  for (std::int64_t first : {0, 4}) {
    Mesh stage = *all.submesh({"x"}, first);
    auto step = jit(known::total);
    step(placed({16, 8}, stage, P("x", none)));
    ProgramReport report = explain(step);
    ASSERT_EQ(report.collectives().size(), 1u) << report.to_string();
    EXPECT_EQ(report.collectives()[0].axes, AxisList({"x"}));
    EXPECT_EQ(report.collectives()[0].group_size, 4);
    EXPECT_EQ(report.mesh()->size(), 4);
    EXPECT_EQ(report.mesh()->device_id(0), first);
  }
}

TEST_F(KnownCollectives, AReductionIsToldAtItsLine) {
  auto step = jit(known::total);
  step(placed({16, 8}, mesh, P("data", "model")));
  ProgramReport report = explain(step);
  ASSERT_EQ(report.collectives().size(), 1u) << report.to_string();
  EXPECT_EQ(report.collectives()[0].axes, AxisList({"data"}));
  EXPECT_EQ(report.collectives()[0].bytes(), 8 / 4 * known::kBytesOfF32);
  EXPECT_EQ(report.collectives()[0].origin.to_string(), known::place() + " (exact)");
}

TEST_F(KnownCollectives, WhatDoesNotMoveHasNone) {
  auto step = jit([](Tensor x, Tensor y) { return tanh(x) * y; });
  step(placed({16, 32}, mesh, P("data", "model")), placed({16, 32}, mesh, P("data", "model")));
  EXPECT_TRUE(explain(step).collectives().empty());
}

}  // namespace
}  // namespace meshard

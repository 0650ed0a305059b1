// The same programs compiled for other hardware: a node of 8 H100 and a slice of 8 TPU v5e. The
// tests skip, with a message, if the plugin of the hardware is not installed.
#include <gtest/gtest.h>

#include "meshard/explain/explain.h"
#include "meshard/explain/predict/predict.h"
#include "meshard/pjrt/plugin_search.h"
#include "meshard/target/compile_workers.h"
#include "tests/e2e/known_programs.h"

namespace meshard {
namespace {

class KnownTargets : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    Result<std::string> plugin = pjrt::find_plugins().first(target.platform());
    if (!plugin.ok()) GTEST_SKIP() << "no plugin for " << GetParam();
    if (Result<std::string> program = find_compile_program(); !program.ok())
      GTEST_SKIP() << program.error().message();
  }
  bool on_tpu() const { return target.platform() == "tpu"; }
  Tensor tensor(Shape shape, const PartitionSpec& spec) const {
    return abstract_tensor(std::move(shape), DType::f32, mesh, spec);
  }
  Target target = Target::parse(GetParam()).value();
  Mesh mesh{{{"data", 2}, {"model", 4}}};
};

TEST_P(KnownTargets, ColumnThenRowParallelLayersSumOnce) {
  ProgramReport report =
      explain(target, known::mlp, tensor({256, 512}, P("data", none)),
              tensor({512, 1024}, P(none, "model")), tensor({1024, 384}, P("model", none)));
  std::vector<Collective> sums = report.collectives(CollectiveKind::kAllReduce, {"model"});
  ASSERT_EQ(sums.size(), 1u) << report.to_string();
  EXPECT_EQ(report.collectives().size(), 1u) << report.to_string();
  EXPECT_EQ(sums[0].bytes(), 256 / 2 * 384 * known::kBytesOfF32);
  EXPECT_EQ(sums[0].executions, 1);
  EXPECT_EQ(sums[0].origin.to_string(), known::place() + " (exact)");
  EXPECT_EQ(report.parts().target.name, GetParam());
}

TEST_P(KnownTargets, AReductionIsToldAtItsLine) {
  ProgramReport report = explain(target, known::total, tensor({256, 512}, P("data", "model")));
  ASSERT_EQ(report.collectives().size(), 1u) << report.to_string();
  EXPECT_EQ(report.collectives()[0].axes, AxisList({"data"}));
  EXPECT_EQ(report.collectives()[0].bytes(), 512 / 4 * known::kBytesOfF32);
  EXPECT_EQ(report.collectives()[0].origin.to_string(), known::place() + " (exact)");
}

TEST_P(KnownTargets, ALoopRunsItsSumTwelveTimes) {
  ProgramReport report = explain_module(known::kLoop, target);
  std::int64_t executions = 0;
  for (const Collective& one : report.collectives()) {
    EXPECT_EQ(one.axes, AxisList({"model"})) << one.to_string();
    // A compiler may reduce-scatter inside the loop, and gather once after the loop.
    if (one.kind != CollectiveKind::kAllReduce && one.kind != CollectiveKind::kReduceScatter)
      continue;
    EXPECT_TRUE(one.executions_known);
    EXPECT_EQ(one.loop_depth, 1);
    EXPECT_EQ(one.bytes(), 16 / 2 * 32 * known::kBytesOfF32);
    executions += one.executions;
  }
  EXPECT_EQ(executions, 12) << report.to_string();
}

TEST_P(KnownTargets, FullyShardedTrainingMovesEachWeightAndGradient) {
  mesh = Mesh({{"data", 8}});
  ProgramReport report =
      explain(target, known::gradients, tensor({512, 1024}, P("data", none)),
              tensor({1024, 256}, P("data", none)), tensor({4096, 512}, P("data", none)));
  std::int64_t v = 512 * 1024 * known::kBytesOfF32, w = 1024 * 256 * known::kBytesOfF32;
  for (const Collective& one : report.collectives()) {
    if (one.kind == CollectiveKind::kSend || one.kind == CollectiveKind::kReceive) continue;
    EXPECT_EQ(one.axes, AxisList({"data"})) << report.to_string();
  }
  if (!on_tpu()) {
    // This compiler may combine collectives; the total number of bytes does not change.
    EXPECT_EQ(known::sum(known::bytes_of(report, {CollectiveKind::kAllGather})), v + w)
        << report.to_string();
    EXPECT_EQ(known::sum(known::bytes_of(report, known::kSums)), v + w) << report.to_string();
    return;
  }
  // This compiler may overlap a gather or a scatter with the product, in steps around the ring. The
  // report labels each such permutation as a step.
  for (const Collective& one : report.collectives(CollectiveKind::kCollectivePermute))
    EXPECT_EQ(one.form, CollectiveForm::kWindowedEinsum) << report.to_string();
  EXPECT_FALSE(report.collectives().empty());
}

TEST_P(KnownTargets, SequenceParallelLayersGatherBeforeAndSumAfter) {
  Sharding outside(mesh, P("model", none)), whole(mesh, P(none, none));
  ProgramReport report = explain(
      target,
      [&](Tensor x, Tensor v, Tensor w) { return known::sequence_mlp(x, v, w, outside, whole); },
      tensor({1024, 512}, P("model", none)), tensor({512, 1024}, P(none, "model")),
      tensor({1024, 512}, P("model", none)));
  std::int64_t activations = 1024 * 512 * known::kBytesOfF32;
  for (const Collective& one : report.collectives()) {
    if (one.kind == CollectiveKind::kSend || one.kind == CollectiveKind::kReceive) continue;
    EXPECT_EQ(one.axes, AxisList({"model"})) << report.to_string();
  }
  if (on_tpu() && report.collectives(CollectiveKind::kCollectivePermute).size() > 0) {
    for (const Collective& one : report.collectives(CollectiveKind::kCollectivePermute))
      EXPECT_EQ(one.form, CollectiveForm::kWindowedEinsum) << report.to_string();
    return;
  }
  // A TPU multiplies f32 as bf16 by default, and this compiler gathers bf16.
  EXPECT_EQ(known::bytes_of(report, {CollectiveKind::kAllGather}),
            std::vector{on_tpu() ? activations / 2 : activations})
      << report.to_string();
  EXPECT_EQ(known::bytes_of(report, known::kSums), std::vector{activations}) << report.to_string();
}

TEST_P(KnownTargets, ARingExchangePermutes) {
  ProgramReport report = explain(
      target,
      [&](Tensor x) {
        return manual(mesh, P("data", "model"), P("data", "model"),
                      [](Tensor local) { return ring_shift(local, "model"); })(x);
      },
      tensor({16, 512}, P("data", "model")));
  ASSERT_EQ(report.collectives().size(), 1u) << report.to_string();
  const Collective& one = report.collectives()[0];
  EXPECT_EQ(one.kind, CollectiveKind::kCollectivePermute);
  EXPECT_EQ(one.axes, AxisList({"model"}));
  EXPECT_EQ(one.bytes(), 16 / 2 * 512 / 4 * known::kBytesOfF32);
  EXPECT_EQ(one.cause, CollectiveCause::kAsked);
  EXPECT_EQ(one.form, CollectiveForm::kPlain);
}

TEST_P(KnownTargets, AProgramOnASubmeshStaysInIt) {
  Mesh all({{"stage", 2}, {"x", 4}});
  mesh = *all.submesh({"x"}, 4);
  ProgramReport report = explain(target, known::total, tensor({512, 256}, P("x", none)));
  ASSERT_EQ(report.collectives().size(), 1u) << report.to_string();
  EXPECT_EQ(report.collectives()[0].axes, AxisList({"x"}));
  EXPECT_EQ(report.collectives()[0].group_size, 4);
  EXPECT_EQ(report.collectives()[0].bytes(), 256 * known::kBytesOfF32);
  EXPECT_EQ(report.mesh()->size(), 4);
  EXPECT_EQ(report.mesh()->device_id(0), 4);
}

INSTANTIATE_TEST_SUITE_P(Targets, KnownTargets, testing::Values("h100:8", "v5e:2x4"),
                         [](const auto& each) {
                           return std::string(each.param).substr(0, 4) == "h100" ? "H100" : "V5e";
                         });

}  // namespace
}  // namespace meshard

// Tests explain_pipeline() with the compiler of TPUs, where it is installed.
#include <gtest/gtest.h>

#include "meshard/explain/hlo_testutil.h"
#include "meshard/explain/program_facts.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/ops/all.h"
#include "meshard/pipeline/schedule/schedule.h"
#include "meshard/plan/pipeline/plan_pipeline.h"
#include "meshard/target/target.h"

namespace meshard {
namespace {

TEST(TpuPipeline, HasTimesMemoryAndTransfers) {
  Target target = Target::parse("v5e:4x4").value();
  Mesh mesh = mesh_on_target({{"stage", 2}, {"x", 8}}, target, DeviceOrder::kTorus).value();
  DeviceIds ids = mesh.device_ids();
  std::vector<PipelineStage> stages;
  for (int s = 0; s < 2; ++s) {
    Mesh own = *mesh.submesh({"x"}, ids[s * 8]);
    Tensor w = abstract_tensor({2048, 2048}, DType::bf16, own, P(none, none));
    if (s == 0)
      stages.emplace_back(own, w,
                          [](const Tensor& weight, const Tensor& x) { return matmul(x, weight); });
    else
      stages.emplace_back(own, w, [](const Tensor& weight, const Tensor& h, const Tensor&) {
        return astype(sum(matmul(h, weight)), DType::f32);
      });
  }
  Tensor x = abstract_tensor({8192, 2048}, DType::bf16, stages[0].mesh(), P("x", none));
  std::optional<PipelineReport> made;
  try {
    made = explain_pipeline(target, stages, one_forward_one_backward(2, 4), x,
                            {.pipeline = {.optimizer = optim::Sgd{.rate = 0.1}}});
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kNotFound) GTEST_SKIP() << error.what();
    throw;
  }
  const PipelineReport& report = *made;
  EXPECT_TRUE(report.times_known());
  HardwareFigures figures = hardware_figures(target.topology()).value();
  EXPECT_EQ(report.stages()[0].memory.capacity, figures.memory_bytes);
  // No faster than the matrix units: three products of [1024, 2048] rows and [2048, 2048].
  const double product = 2.0 * 1024 * 2048 * 2048 / figures.matrix_rate("bf16");
  for (const PipelineStageReport& one : report.stages()) {
    EXPECT_GE(one.times.forward, product * (1 - 1e-9));
    EXPECT_GE(one.busy, 4 * 2 * product);
    EXPECT_TRUE(one.fits());
    EXPECT_EQ(one.memory.parameters, 2048 * 2048 * 2);
    EXPECT_EQ(one.memory.gradients, 2048 * 2048 * 4);  // sums in f32
  }
  ASSERT_EQ(report.transfers().size(), 2u);
  EXPECT_EQ(report.transfers()[0].bytes, 8192 * 2048 * 2);
  EXPECT_EQ(report.transfers()[0].device_bytes, 1024 * 2048 * 2);
  // A device cannot send faster than over all its links, which the message may not use.
  EXPECT_GE(report.transfers()[0].time, 1024 * 2048 * 2 / figures.link_bandwidth);
}

// The last layer has a loss that is as large as two other layers.
TEST(TpuPipeline, PlanBalancesLayers) {
  Target target = Target::parse("v5e:2x4").value();
  std::vector<Tensor> weights(6, abstract_tensor({2048, 2048}, DType::bf16));
  PipelineLayers layers = pipeline_layers(
      weights, [](const Tensor& x) { return x; },
      [](const Tensor& w, const Tensor& h) { return tanh(matmul(h, w)); },
      [](const Tensor& h, const Tensor& x) {
        Tensor product = matmul(matmul(h, permute_dims(x)), x);  // [rows, rows], [rows, 2048]
        return astype(mean(square(product)), DType::f32);
      });
  Tensor batch = abstract_tensor({16384, 2048}, DType::bf16, Mesh({{"x", 4}}), P("x", none));
  std::optional<PipelinePlan> made;
  try {
    made =
        plan_pipeline(target, layers, batch, {.workers = {2}, .microbatches = {8}, .chunks = {1}});
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kNotFound) GTEST_SKIP() << error.what();
    throw;
  }
  const PlannedPipeline& best = made->ranking.front();
  EXPECT_TRUE(best.fits());
  EXPECT_TRUE(best.report->times_known());
  // Both stages have layers, and the last one has no more than the first.
  EXPECT_GE(best.candidate.layers[0], best.candidate.layers[1]);
  EXPECT_LT(best.report->bubble(), 0.25);
}

}  // namespace
}  // namespace meshard

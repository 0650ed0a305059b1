// Compares costs with the compiler's own counts, for programs that the CPU plugin compiled.
#include <gtest/gtest.h>

#include <cmath>

#include "meshard/explain/cost/module_cost.h"
#include "meshard/explain/hlo_testutil.h"
#include "meshard/hlo/executions.h"

namespace meshard {
namespace {

// A property of the compiler's own cost analysis: `flops`, `transcendentals`, `bytes accessed`.
double analyzed(const std::vector<pjrt::NamedValue>& analysis, const std::string& name) {
  for (const pjrt::NamedValue& each : analysis)
    if (each.name == name)
      if (const float* value = std::get_if<float>(&each.value)) return *value;
  return 0;
}

struct Compared {
  HloCost ours;
  double flops = 0, transcendentals = 0, bytes = 0;
};

Compared compared(const std::string& text, int partitions = 1) {
  pjrt::CompileOptions options;
  options.num_partitions = partitions;
  pjrt::LoadedExecutable loaded = runtime_client().compile(text, options).value();
  const pjrt::Executable& executable = loaded.executable();
  HloModule module = HloModule::from_bytes(executable.optimized_program().value()).value();
  ModuleIndex index(module);
  Executions executions = Executions::of(index).value();
  std::vector<pjrt::NamedValue> analysis = executable.cost_analysis().value();
  return {ModuleCost(executions).total(), analyzed(analysis, "flops"),
          analyzed(analysis, "transcendentals"), analyzed(analysis, "bytes accessed")};
}

class CompiledCost : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = why_no_plugin(); !why.empty()) GTEST_SKIP() << why;
    pjrt::LoadedExecutable loaded =
        runtime_client()
            .compile("func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }",
                     {})
            .value();
    if (auto analysis = loaded.executable().cost_analysis();
        !analysis.ok() && analysis.error().code() == ErrorCode::kUnimplemented)
      GTEST_SKIP() << "this plugin's compiler tells no costs";
  }
};

void expect_as_the_compiler(const std::string& text) {
  Compared result = compared(text);
  EXPECT_GT(result.flops, 0) << text;
  EXPECT_NEAR(result.ours.flops(), result.flops, 0.01 * result.flops) << text;
  EXPECT_NEAR(result.ours.transcendentals(), result.transcendentals, 0.01 * result.transcendentals)
      << text;
  EXPECT_NEAR(result.ours.memory_bytes, result.bytes, 0.05 * result.bytes) << text;
}

TEST_F(CompiledCost, LoopFreeProgramsCountAsTheCompilerCounts) {
  expect_as_the_compiler(R"(
func.func @main(%x: tensor<64x128xf32>, %w: tensor<128x32xf32>) -> tensor<64x32xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x128xf32>, tensor<128x32xf32>) -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
})");
  expect_as_the_compiler(R"(
func.func @main(%x: tensor<8x64x128xf32>, %w: tensor<8x128x32xf32>) -> tensor<8x64x32xf32> {
  %0 = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x64x128xf32>, tensor<8x128x32xf32>) -> tensor<8x64x32xf32>
  %1 = stablehlo.tanh %0 : tensor<8x64x32xf32>
  return %1 : tensor<8x64x32xf32>
})");
  expect_as_the_compiler(R"(
func.func @main(%x: tensor<2x16x16x8xf32>, %k: tensor<3x3x8x4xf32>) -> tensor<2x16x16x4xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x16x16x8xf32>, tensor<3x3x8x4xf32>) -> tensor<2x16x16x4xf32>
  return %0 : tensor<2x16x16x4xf32>
})");
  expect_as_the_compiler(R"(
func.func @main(%x: tensor<64x128xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %x : tensor<64x128xf32>
  %1 = stablehlo.multiply %0, %x : tensor<64x128xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x128xf32>, tensor<f32>) -> tensor<64xf32>
  return %2 : tensor<64xf32>
})");
}

}  // namespace
}  // namespace meshard

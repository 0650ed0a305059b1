// Tests explain() for hardware that this machine does not have, compiled for the CPU plugin's
// virtual devices. Expected bytes follow from the formulas for each pattern.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "meshard/base/cat.h"
#include "meshard/base/whole_file.h"
#include "meshard/explain/explain.h"
#include "meshard/explain/hlo_testutil.h"
#include "meshard/explain/report_of.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/ops/composite/matmul.h"
#include "meshard/ops/dot_general.h"
#include "meshard/ops/trigonometric.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::HasSubstr;

class ExplainFor : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string reason = why_no_plugin(); !reason.empty())
      GTEST_SKIP() << "no CPU plugin: " << reason;
    options_.compile.use_cache = module_options_.compile.use_cache = false;
  }

  ProgramReport report_of_file(std::string_view text) {
    return explain_module(text, target_, module_options_);
  }

  Target target_ = Target::parse("cpu:8").value();
  Mesh mesh_{{{"data", 2}, {"model", 4}}};
  ExplainForOptions options_;
  ExplainForOptions module_options_;
};

// The weight is split over "data", as are the rows of x; the product needs the whole weight.
constexpr std::string_view kGathers = R"(module @gathers {
  sdy.mesh @mesh = <["data"=8]>
  func.func public @main(
      %x: tensor<4096x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"),
      %w: tensor<128x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("w"))
      -> (tensor<4096x64xf32> {jax.result_info = "y",
                               sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4096x128xf32>, tensor<128x64xf32>) -> tensor<4096x64xf32> loc("product")
    return %0 : tensor<4096x64xf32>
  }
}
)";

// Each device has an eighth of the 128x64 weight and gathers it in a ring of 8.
TEST_F(ExplainFor, ProcessesAndTheirLinks) {
  module_options_.links = {.processes = 2, .between_processes = LinkFigures{1e6, 1e-3}};
  ProgramReport report = report_of_file(kGathers);
  EXPECT_EQ(report.parts().processes, (MeshProcesses{2, {"data"}}));
  ASSERT_EQ(report.collectives().size(), 1u);
  EXPECT_TRUE(report.collectives()[0].across_processes);
  // Four devices of each process share its link; each sends half of a quarter, in one message.
  double bytes = 128 * 64 * 4;
  ASSERT_TRUE(report.parts().roofline.has_value());
  EXPECT_FALSE(report.parts().roofline->rates_known);
  EXPECT_DOUBLE_EQ(report.parts().roofline->seconds(), 4 * (bytes / 4 / 2) / 1e6 + 1e-3);
  EXPECT_THAT(report.to_string(), HasSubstr(", across processes, from "));
  module_options_.links = {};
  report = report_of_file(kGathers);
  EXPECT_FALSE(report.parts().processes.has_value());
  EXPECT_FALSE(report.parts().roofline.has_value());
  options_.links.processes = 8;
  Tensor x = abstract_tensor({16, 32}, DType::f32, mesh_, P("data", "model"));
  Tensor w = abstract_tensor({32, 8}, DType::f32, mesh_, P("model", none));
  report = explain(
      target_, options_, [](Tensor a, Tensor b) { return matmul(a, b); }, x, w);
  EXPECT_EQ(report.parts().processes, (MeshProcesses{8, {"data", "model"}}));
  options_.links.processes = 3;
  EXPECT_TRUE(throws_error(
      [&] {
        explain(
            target_, options_, [](Tensor a, Tensor b) { return matmul(a, b); }, x, w);
      },
      ErrorCode::kInvalidArgument, {"8 devices cannot be divided into 3 processes"}));
}

TEST_F(ExplainFor, AModuleThatGathers) {
  ProgramReport report = report_of_file(kGathers);
  ASSERT_EQ(report.collectives().size(), 1u) << report.to_string();
  const Collective& gather = report.collectives()[0];
  EXPECT_EQ(gather.kind, CollectiveKind::kAllGather);
  EXPECT_EQ(gather.axes, AxisList({"data"}));
  EXPECT_EQ(gather.bytes_out, 128 * 64 * 4);

  ASSERT_EQ(report.arguments().size(), 2u);
  EXPECT_EQ(report.arguments()[1].name, "w");
  EXPECT_EQ(report.arguments()[1].shard().to_string(), "f32[16,64]");
  EXPECT_FALSE(report.arguments()[1].chosen_by_compiler);
  EXPECT_EQ(report.results()[0].name, "y");
  EXPECT_EQ(report.memory()->arguments, (512 * 128 + 16 * 64) * 4);
  EXPECT_TRUE(report.fits());
  EXPECT_EQ(report.parts().target.name, "cpu:8");
  EXPECT_EQ(report.parts().target.devices, 8);

  ASSERT_EQ(report.parts().reshards.size(), 1u);
  const Reshard& reshard = report.parts().reshards[0];
  EXPECT_EQ(reshard.kind, ReshardKind::kGather);
  EXPECT_EQ(reshard.bytes, 128 * 64 * 4);
  EXPECT_EQ(reshard.type, "f32[128,64]");
  EXPECT_EQ(reshard.from, "P(\"data\", none)");
  EXPECT_EQ(reshard.to, "P(none, none)");
  EXPECT_THAT(reshard.cause, HasSubstr("all of dimension 0"));

  ASSERT_EQ(report.parts().intermediates.size(), 1u);
  EXPECT_EQ(report.parts().intermediates[0].name, "product");
  EXPECT_EQ(report.parts().intermediates[0].shard().to_string(), "f32[512,64]");
  EXPECT_TRUE(report.parts().intermediates[0].chosen_by_compiler);
}

Tensor explained_product(In a, In b) {
  SourceScope line(a.where);
  return dot_general(*a.tensor, *b.tensor, {.lhs_contracting = {1}, .rhs_contracting = {0}});
}

TEST_F(ExplainFor, AFunctionOfAbstractTensors) {
  std::uint32_t line = 0;
  auto layer = jit(
      [&](Tensor x, Tensor v, Tensor w) {
        Tensor hidden = tanh(explained_product(x, v));
        line = SourceLocation::current().line + 1;
        return explained_product(hidden, w);
      },
      {.name = "layer", .donate = {0}});
  ProgramReport report =
      explain(target_, options_, layer, abstract_tensor({16, 32}, DType::f32, mesh_, P("data")),
              abstract_tensor({32, 64}, DType::f32, mesh_, P(none, "model")),
              abstract_tensor({64, 32}, DType::f32, mesh_, P("model")));
  EXPECT_EQ(report.name(), "layer");
  std::vector<Collective> sums = report.collectives(CollectiveKind::kAllReduce, {"model"});
  ASSERT_EQ(sums.size(), 1u) << report.to_string();
  EXPECT_EQ(report.collectives().size(), 1u);
  EXPECT_EQ(sums[0].bytes(), 16 / 2 * 32 * 4);
  EXPECT_EQ(sums[0].origin.to_string(), cat("explain_for_test.cc:", line, " (exact)"));
  EXPECT_EQ(report.arguments()[0].name, "argument 0");
  EXPECT_TRUE(report.arguments()[0].donated);
  EXPECT_EQ(report.arguments()[1].shard().to_string(), "f32[32,16]");
  bool has_tanh = false;
  for (const ValuePlacement& value : report.parts().intermediates)
    if (value.name == "tanh") {
      has_tanh = true;
      EXPECT_EQ(value.shard().to_string(), "f32[8,16]");
    }
  EXPECT_TRUE(has_tanh);
  EXPECT_EQ(layer.stats().traces, 0u);  // nothing was compiled for this process
}

TEST_F(ExplainFor, AMeshOfOtherDevices) {
  Mesh elsewhere({{"x", 2}}, {100, 101});
  EXPECT_TRUE(throws_error(
      [&] {
        explain(
            target_, options_, [](Tensor x) { return tanh(x); },
            abstract_tensor({4}, DType::f32, elsewhere, P("x")));
      },
      ErrorCode::kInvalidArgument, {"device 100", "cpu:8", "torus_mesh"}));
}

constexpr std::string_view kSum =
    R"(module @jit_f attributes {jax.note = "x", mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=2, "model"=4]>
  func.func public @main(%arg0: tensor<16x8xf32>, %arg1: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}) -> (tensor<8x8xf32>, tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"data", "model"}, {}]>] out_shardings=[<@mesh, [{"model"}, {}]>] manual_axes={"data", "model"} (%arg2: tensor<2x8xf32>) {
      %2 = "stablehlo.all_reduce"(%arg2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
        %3 = stablehlo.add %arg3, %arg4 : tensor<f32>
        stablehlo.return %3 : tensor<f32>
      }) : (tensor<2x8xf32>) -> tensor<2x8xf32>
      sdy.return %2 : tensor<2x8xf32>
    } : (tensor<16x8xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.dot_general %arg1, %arg1, contracting_dims = [1] x [1] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
    return %0, %1 : tensor<8x8xf32>, tensor<16x16xf32>
  }
}
)";

// Without locations, the program's own sum is recognized by its op.
TEST_F(ExplainFor, WhatIsAskedForStaysSoWithoutLocations) {
  ProgramReport report = report_of_file(kSum);
  std::map<std::int64_t, const Collective*> sums;  // by their bytes
  for (const Collective& one : report.collectives()) sums[one.bytes()] = &one;
  ASSERT_TRUE(sums.contains(2 * 8 * 4) && sums.contains(16 * 16 * 4)) << report.to_string();
  EXPECT_EQ(sums[2 * 8 * 4]->cause, CollectiveCause::kAsked);
  EXPECT_EQ(sums[2 * 8 * 4]->origin.to_string(), "-:5 (exact)");
  EXPECT_EQ(sums[16 * 16 * 4]->cause, CollectiveCause::kInserted);
  EXPECT_THAT(report.to_string(), HasSubstr("no source lines"));
}

constexpr std::string_view kUpdate = R"(module {
  func.func @"update!"(%x: tensor<16x8xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}", tt.x = #tt.x<1>}, %u: tensor<12x1xf32>) -> tensor<16x8xf32> {
    %a = stablehlo.constant dense<2> : tensor<i64>
    %b = stablehlo.constant dense<7> : tensor<i64>
    %r = stablehlo.dynamic_update_slice %x, %u, %a, %b {mhlo.sharding = "{devices=[2,4]<=[8]}"} : (tensor<16x8xf32>, tensor<12x1xf32>, tensor<i64>, tensor<i64>) -> tensor<16x8xf32>
    return %r : tensor<16x8xf32>
  }
  func.func private @other(%x: tensor<16x8xf32>) -> tensor<16x8xf32> {
    return %x : tensor<16x8xf32>
  }
}
)";

TEST_F(ExplainFor, AnEntryOfAnyNameWithUnknownAttributes) {
  std::string text = report_of_file(kUpdate).to_string();
  EXPECT_THAT(text, HasSubstr("inserted: `dynamic_update_slice` at -:5 needs all of"));
  EXPECT_THAT(text, HasSubstr("the program is the function `update!`"));
  EXPECT_THAT(text, HasSubstr("1 attribute of the dialect `tt`"));
  module_options_.entry = "other";
  module_options_.layout.part_of_target = true;
  EXPECT_TRUE(report_of_file(kUpdate).collectives().empty());
}

constexpr std::string_view kCalls =
    R"(module @jit_f attributes {jax.note = "x", mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["d"=8]>
  func.func public @main(%arg0: tensor<16x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}, {}]>}) -> (tensor<16x4x4xf32>, tensor<16x4xi32>) {
    %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%arg0) {api_version = 4 : i32, mhlo.backend_config = {index = 0 : ui64}} : (tensor<16x4x4xf32>) -> tensor<16x4x4xf32> loc("callback")
    %1 = stablehlo.custom_call @nobody_knows_this(%0) {backend_config = "old"} : (tensor<16x4x4xf32>) -> tensor<16x4x4xf32>
    %2:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%arg0) {api_version = 4 : i32, mhlo.frontend_attributes = {num_batch_dims = "1"}} : (tensor<16x4x4xf32>) -> (tensor<16x4x4xf32>, tensor<16x4xi32>, tensor<16xi32>)
    return %1, %2#1 : tensor<16x4x4xf32>, tensor<16x4xi32>
  }
}
)";

// XLA gathers the operand of a call that it does not know; JAX's own compiler splits LAPACK's by
// their batch.
TEST_F(ExplainFor, CallsWithoutAHandlerAreReported) {
  ProgramReport report = report_of_file(kCalls);
  ASSERT_EQ(report.collectives().size(), 1u) << report.to_string();
  EXPECT_EQ(report.collectives()[0].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(report.collectives()[0].bytes_out, 16 * 4 * 4 * 4);
  EXPECT_EQ(report.results()[1].shard().to_string(), "i32[2,4]");
  // The process that compiles has registered the calls when it reports them again.
  for (const std::string& text : {report.to_string(), report_of_file(kCalls).to_string()}) {
    EXPECT_THAT(text, HasSubstr("2 custom calls have no handler here (nobody_knows_this, "
                                "xla_ffi_python_cpu_callback)"));
    EXPECT_THAT(text, HasSubstr("1 custom call has no handler here (lapack_sgetrf_ffi)"));
  }
}

// The program sums over "model" in its code for CPUs, twice; the code for others has other sums.
TEST_F(ExplainFor, OneOfSeveralPlatforms) {
  std::string bytes =
      read_whole_file(cat(MESHARD_GOLDEN, "/exported/platforms_exported.bin")).value();
  ProgramReport report = report_of_file(bytes);
  std::map<std::int64_t, int> sums;
  for (const Collective& one : report.collectives()) {
    EXPECT_EQ(one.kind, CollectiveKind::kAllReduce);
    EXPECT_FALSE(one.conditional);
    EXPECT_EQ(one.axes, AxisList({"model"}));
    ++sums[one.bytes()];
  }
  std::map<std::int64_t, int> expected = {{8 * 4, 1}, {8 * 8 * 4, 1}};
  if (sums.size() == 1) expected = {{8 * 4 + 8 * 8 * 4, 1}};  // combined
  EXPECT_EQ(sums, expected) << report.to_string();
  EXPECT_THAT(report.to_string(),
              HasSubstr("exported for tpu, cpu, cuda: this is its code for cpu"));
}

TEST(ExplainModule, ModulesWithNothingToExplain) {
  Target target = Target::parse("cpu:4").value();
  auto refused = [&](std::string_view module, ErrorCode code, std::string_view part) {
    return throws_error([&] { explain_module(module, target); }, code, {std::string(part)});
  };
  EXPECT_TRUE(refused("HloModule jit_f\n", ErrorCode::kInvalidArgument, "HLO module"));
  EXPECT_TRUE(refused("", ErrorCode::kDataLoss, "empty"));
  EXPECT_TRUE(refused("module {}", ErrorCode::kDataLoss, "no function"));
  EXPECT_TRUE(refused("func.func @main() {\n  return\n}\n", ErrorCode::kInvalidArgument,
                      "neither arguments nor results"));
  EXPECT_TRUE(refused(std::string_view("PK\0\1", 4), ErrorCode::kDataLoss, "neither MLIR text"));
}

TEST(ExplainModule, RefusesBeforeCompiling) {
  Target target = Target::parse("cpu:4").value();
  EXPECT_TRUE(throws_error([&] { explain_module("garbage", target); }, ErrorCode::kDataLoss,
                           {"explain_for_test.cc:"}));
  EXPECT_TRUE(throws_error([&] { explain_module(kGathers, target); }, ErrorCode::kInvalidArgument,
                           {"explain_for_test.cc:"}));
}

TEST(ReportOfRefused, SaysWhatTheCompilerCounted) {
  ProgramFacts facts;
  facts.request.emplace().target = Target::parse("v5e:2x2").value();
  facts.program.mesh = Mesh({{"x", 4}});
  facts.program.meshes = {*facts.program.mesh};
  TensorType type{DType::f32, Shape{1024, 1024}};
  facts.program.arguments = {{type, type, Sharding(*facts.program.mesh, P("x", none))}};
  facts.argument_names = {"w"};
  facts.donated = {false};
  Error error(ErrorCode::kResourceExhausted,
              "Ran out of memory on HBM, the total memory required for HLO temporaries (16.00G) "
              "exceeds available HBM (15.75G).");
  ProgramReport report = report_of_refused(error, facts);
  EXPECT_FALSE(report.fits());
  EXPECT_EQ(report.memory()->temporaries, std::int64_t{16} << 30);
  EXPECT_EQ(report.memory()->capacity, std::int64_t{63} << 28);  // 15.75 GiB
  EXPECT_EQ(report.memory()->arguments, 1024 * 1024 * 4 / 4);
  EXPECT_EQ(report.arguments()[0].name, "w");
  EXPECT_THAT(report.to_string(), HasSubstr("does not fit"));
  EXPECT_THAT(report.to_string(), HasSubstr("15.75G"));
}

}  // namespace
}  // namespace meshard

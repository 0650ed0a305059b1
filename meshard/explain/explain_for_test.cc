// Tests explain() for hardware that this machine does not have, compiled for the CPU plugin's
// virtual devices. Expected bytes follow from the formulas for each pattern.
#include "meshard/explain/explain_for.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/explain/explain.h"
#include "meshard/explain/hlo_testutil.h"
#include "meshard/explain/report_of.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/ops/composite/matmul.h"
#include "meshard/ops/dot_general.h"
#include "meshard/ops/tanh.h"
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
  ExplainModuleOptions module_options_;
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

TEST(ExplainModule, RefusesBeforeCompiling) {
  Target target = Target::parse("cpu:4").value();
  EXPECT_TRUE(throws_error([&] { explain_module("garbage", target); }, ErrorCode::kDataLoss,
                           {"explain_for_test.cc:"}));
  EXPECT_TRUE(throws_error([&] { explain_module(kGathers, target); }, ErrorCode::kInvalidArgument,
                           {"explain_for_test.cc:"}));
}

TEST(ReportOfRefused, SaysWhatTheCompilerCounted) {
  ProgramFacts facts;
  facts.target = Target::parse("v5e:2x2").value();
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

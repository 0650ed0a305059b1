// Tests explain() on jitted functions that a real plugin compiled.
#include "meshard/explain/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/explain/hlo_testutil.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/arithmetic.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/ops/dot_general.h"
#include "meshard/ops/exponential.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/trigonometric.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::HasSubstr;

const bool kInstalled = install_runtime();

class Explain : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(kInstalled);
    if (std::string reason = why_no_plugin(); !reason.empty())
      GTEST_SKIP() << "no CPU plugin: " << reason;
  }

  Tensor placed(Shape shape, const PartitionSpec& spec) const {
    std::vector<float> values(static_cast<std::size_t>(shape.size()), 0.5f);
    return mark_sharding(from_host(std::move(values), std::move(shape)), mesh_, spec);
  }

  Mesh mesh_{{{"data", 2}, {"model", 4}}};
};

Tensor product(In a, In b) {
  SourceScope line(a.where);
  return dot_general(*a.tensor, *b.tensor, {.lhs_contracting = {1}, .rhs_contracting = {0}});
}

std::string line_of_source(std::uint32_t line) { return "explain_test.cc:" + std::to_string(line); }

TEST_F(Explain, LinksOfAProgramInOneProcess) {
  auto layer = jit([](Tensor x, Tensor w) { return product(x, w); });
  layer(placed({16, 32}, P("data", "model")), placed({32, 8}, P("model", none)));
  EXPECT_FALSE(explain(layer).parts().roofline.has_value());
  LinkOptions links;
  links.between_devices = LinkFigures{1e6, 1e-3};
  ProgramReport report = explain(layer, links);
  // 8 rows of 8 floats in a ring of four: 2 * 3/4 of the bytes, in 6 messages.
  ASSERT_TRUE(report.parts().roofline.has_value()) << report.to_string();
  EXPECT_DOUBLE_EQ(report.parts().roofline->seconds(), 1.5 * 8 * 8 * 4 / 1e6 + 6e-3);
  EXPECT_FALSE(report.parts().processes.has_value());
  EXPECT_THAT(report.to_string(), testing::Not(HasSubstr("across processes")));
  for (bool between : {true, false}) {
    links = {};
    if (between)
      links.between_processes = LinkFigures{1e6, 0};
    else
      links.processes = 2;
    EXPECT_TRUE(throws_error([&] { explain(layer, links); }, ErrorCode::kInvalidArgument,
                             {"explain_test.cc", between ? "one process" : "those of the run"}));
  }
}

TEST_F(Explain, ColumnThenRowParallel) {
  std::uint32_t line = 0;
  auto layer = jit([&](Tensor x, Tensor v, Tensor w) {
    Tensor hidden = tanh(product(x, v));
    line = SourceLocation::current().line + 1;
    return product(hidden, w);
  });
  Tensor x = placed({16, 32}, P("data", none)), v = placed({32, 64}, P(none, "model")),
         w = placed({64, 32}, P("model", none));
  Tensor y = layer(x, v, w);
  ProgramReport report = explain(layer);

  std::vector<Collective> reductions = report.collectives(CollectiveKind::kAllReduce, {"model"});
  ASSERT_EQ(reductions.size(), 1u) << report.to_string();
  EXPECT_EQ(reductions[0].bytes(), 16 / 2 * 32 * 4);
  EXPECT_EQ(reductions[0].cause, CollectiveCause::kInserted);
  EXPECT_EQ(reductions[0].origin.to_string(), line_of_source(line) + " (exact)");
  EXPECT_THAT(report.to_string(), HasSubstr("1 all-reduce on axis \"model\", 1 KiB, from " +
                                            line_of_source(line) + " (exact)"));

  EXPECT_EQ(report.name(), "main");
  EXPECT_EQ(report.mesh(), mesh_);
  ASSERT_EQ(report.arguments().size(), 3u);
  EXPECT_EQ(report.arguments()[1].shard().to_string(), "f32[32,16]");
  EXPECT_FALSE(report.arguments()[1].chosen_by_compiler);
  ASSERT_EQ(report.results().size(), 1u);
  EXPECT_EQ(report.results()[0].sharding, *y.value().storage()->sharding());
  EXPECT_TRUE(report.results()[0].chosen_by_compiler);
  // One device's shards: 8x32, 32x16 and 16x32 floats.
  ASSERT_TRUE(report.memory().has_value());
  EXPECT_EQ(report.memory()->arguments, (8 * 32 + 32 * 16 + 16 * 32) * 4);
  EXPECT_EQ(report.memory()->outputs, report.results()[0].shard().bytes());
}

TEST_F(Explain, ASumOverTheBatch) {
  std::uint32_t line = 0;
  auto total = jit([&](Tensor x) {
    line = SourceLocation::current().line + 1;
    return sum(exp(x));
  });
  total(placed({16, 32}, P("data", none)));
  std::vector<Collective> all = explain(total).collectives();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(all[0].axes, AxisList({"data"}));
  EXPECT_EQ(all[0].bytes(), 4);
  EXPECT_EQ(all[0].origin.places[0].place, line_of_source(line));
}

TEST_F(Explain, AMarkThatReshards) {
  std::uint32_t line = 0;
  auto move = jit([&](Tensor x) {
    line = SourceLocation::current().line + 1;
    return mark_sharding(x, mesh_, P(none, "model"));
  });
  move(placed({16, 32}, P("model", none)));
  ProgramReport report = explain(move);
  ASSERT_EQ(report.collectives().size(), 1u) << report.to_string();
  const Collective& one = report.collectives()[0];
  EXPECT_EQ(one.kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(one.axes, AxisList({"model"}));
  EXPECT_EQ(one.bytes(), 16 * 32 / 4 * 4);
  EXPECT_EQ(one.cause, CollectiveCause::kAsked);
  EXPECT_EQ(one.origin.to_string(), line_of_source(line) + " (exact)");
}

TEST_F(Explain, NothingToSayAboutElementWiseWork) {
  auto f = jit([](Tensor x) { return exp(x); });
  f(placed({16, 32}, P("data", "model")));
  EXPECT_THAT(explain(f).to_string(), HasSubstr("no collectives"));
}

TEST_F(Explain, OneDeviceHasNoMesh) {
  auto f = jit([](Tensor x) { return exp(x); });
  f(from_host(std::vector<float>(8, 1.0f), Shape{8}));
  ProgramReport report = explain(f);
  EXPECT_EQ(report.mesh(), std::nullopt);
  EXPECT_THAT(report.to_string(), HasSubstr("on one device"));
  EXPECT_EQ(report.arguments()[0].to_string(), "f32[8], 32 B");
}

TEST_F(Explain, UnevenSizesStateTheirPadding) {
  auto f = jit([](Tensor x) { return exp(x); });
  f(placed({5, 3}, P("model", none)));
  ProgramReport report = explain(f);
  EXPECT_EQ(report.arguments()[0].padded.to_string(), "f32[8,3]");
  EXPECT_EQ(report.arguments()[0].padding_bytes(), 3 * 3 * 4 * 2);
}

TEST_F(Explain, CapturedValuesAreArgumentsToo) {
  Tensor w = placed({32, 8}, P(none, none));
  auto f = jit([&](Tensor x) { return product(x, w); });
  f(placed({16, 32}, P("data", none)));
  ProgramReport report = explain(f);
  EXPECT_EQ(report.arguments().size(), 2u);
  EXPECT_EQ(report.num_captured(), 1u);
  EXPECT_THAT(report.to_string(), HasSubstr("1 (captured): f32[32,8]"));
}

TEST_F(Explain, TheNewestProgram) {
  auto f = jit([](Tensor x) { return exp(x); });
  f(placed({16, 32}, P("data", none)));
  f(placed({8, 4}, P("data", none)));
  EXPECT_EQ(explain(f).arguments()[0].type.to_string(), "f32[8,4]");
  EXPECT_EQ(explain(*f.programs()[0]).arguments()[0].type.to_string(), "f32[16,32]");
}

TEST(ExplainErrors, NothingIsCompiledYet) {
  auto f = jit([](Tensor x) { return exp(x); });
  EXPECT_TRUE(throws_error([&] { explain(f); }, ErrorCode::kFailedPrecondition,
                           {"[explain]", "call it first", "explain_test.cc"}));
}

}  // namespace
}  // namespace meshard

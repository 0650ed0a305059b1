#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/explain/collectives/collectives.h"
#include "meshard/explain/cost/schedule.h"
#include "meshard/hlo/executions.h"
#include "meshard/hlo/hlo_testutil.h"

namespace meshard {
namespace {

using EntryKind = TimelineEntry::Kind;

HardwareFigures estimate_figures() {
  HardwareFigures figures;
  figures.matrix_rates = {{"f32", 1000}};
  figures.memory_bandwidth = 100;
  figures.link_bandwidth = 10;
  figures.links = 1;
  figures.link_name = "link";
  figures.sources = {"made up"};
  return figures;
}

const Mesh kEstimateMesh({{"x", 4}});

// A loop of 5 products of 2 * 8 * 8 * 8 operations, each with an all-reduce of 256 bytes.
HloModule looping_module() {
  HloInstruction loop = calling(make_instruction(2, "while", f32_shape({8, 8}), {1}), {1, 2});
  loop.backend_config = R"({"known_trip_count":{"n":"5"}})";
  HloInstruction dot = make_instruction(12, "dot", f32_shape({8, 8}), {11, 11}, "jit(f)/dot");
  dot.dot = HloDotDimensions{{1}, {0}, {}, {}};
  dot.metadata.source_file = "/home/me/net.py";
  dot.metadata.source_line = 42;
  HloModule module =
      make_module({{make_parameter(1, 0, f32_shape({8, 8})), loop,
                    make_instruction(3, "negate", f32_shape({8, 8}), {2})},
                   {make_parameter(11, 0, f32_shape({8, 8})), dot,
                    make_collective(13, "all-reduce", f32_shape({8, 8}), {12}, "", {{0, 1, 2, 3}})},
                   {make_constant(21, 1)}});
  return module;
}

struct Estimated {
  HloModule module;
  ModuleIndex index;
  Executions executions;
  ModuleCost cost;
  std::vector<Collective> collectives;
  explicit Estimated(HloModule of)
      : module(std::move(of)),
        index(module),
        executions(Executions::of(index).value()),
        cost(executions),
        collectives(find_collectives(executions, kEstimateMesh, nullptr).value()) {}
};

TEST(Estimate, RooflineOfALoop) {
  Estimated made(looping_module());
  LinkModel links(estimate_figures(), kEstimateMesh, std::nullopt);
  ProgramCost cost = program_cost(made.cost);
  Roofline roofline = roofline_of(cost, made.collectives, links);
  EXPECT_DOUBLE_EQ(roofline.compute_seconds, 5 * 1024 / 1000.0);
  // In each iteration, the product reads its operand twice and writes once, and the all-reduce
  // reads and writes once. The negation runs once.
  EXPECT_DOUBLE_EQ(roofline.memory_seconds, (5 * (3 + 2) * 256 + 512) / 100.0);
  ASSERT_EQ(roofline.links.size(), 1u);
  EXPECT_EQ(roofline.links[0].axes, "\"x\"");
  EXPECT_DOUBLE_EQ(roofline.links[0].bytes, 5 * 256 * 1.5);
  EXPECT_DOUBLE_EQ(roofline.links[0].seconds, 5 * 256 * 1.5 / 10);
  EXPECT_THAT(roofline.sources, testing::ElementsAre("made up"));
  EXPECT_EQ(roofline.bound_by(), "communication");
}

TEST(Estimate, ProgramCostByType) {
  Estimated made(looping_module());
  ProgramCost cost = program_cost(made.cost);
  ASSERT_EQ(cost.flops.size(), 1u);
  EXPECT_EQ(cost.flops[0].element_type, "f32");
  EXPECT_EQ(cost.flops[0].matrix, 5 * 1024);
  EXPECT_EQ(cost.flops[0].other, 5 * 64 + 64);  // the all-reduces and the negation
  EXPECT_TRUE(cost.loops_known);
}

TEST(Estimate, TimelineInProgramOrderWithLoopsNested) {
  Estimated made(looping_module());
  LinkModel links(estimate_figures(), kEstimateMesh, std::nullopt);
  StepCosts costs(made.executions, made.cost, made.collectives, &links);
  std::vector<TimelineEntry> timeline = timeline_of(costs, nullptr, nullptr);
  ASSERT_EQ(timeline.size(), 4u);
  EXPECT_EQ(timeline[0].kind, EntryKind::kLoop);
  EXPECT_EQ(timeline[0].depth, 0);
  EXPECT_EQ(timeline[1].instruction, "dot.12");
  EXPECT_EQ(timeline[1].kind, EntryKind::kCompute);
  EXPECT_EQ(timeline[1].depth, 1);
  EXPECT_EQ(timeline[1].executions, 5);
  EXPECT_EQ(timeline[1].place, "net.py:42");
  EXPECT_DOUBLE_EQ(timeline[1].seconds, 768 / 100.0);  // memory takes the longest
  EXPECT_EQ(timeline[2].kind, EntryKind::kCollective);
  EXPECT_DOUBLE_EQ(timeline[2].link_bytes, 256);
  EXPECT_DOUBLE_EQ(timeline[2].seconds, 38.4);
  EXPECT_EQ(timeline[3].opcode, "negate");
  EXPECT_EQ(timeline[3].depth, 0);
  EXPECT_DOUBLE_EQ(timeline[0].seconds, 5 * (7.68 + 38.4));
}

TEST(Estimate, TheScheduleGivesTheOrder) {
  HloModule module = make_module(
      {{make_parameter(1, 0, f32_shape({4})), make_instruction(2, "negate", f32_shape({4}), {1}),
        make_instruction(3, "tanh", f32_shape({4}), {1})}});
  module.computations[0].schedule = {1, 3, 2};
  Estimated made(module);
  StepCosts costs(made.executions, made.cost, {}, nullptr);
  std::vector<TimelineEntry> timeline = timeline_of(costs, nullptr, nullptr);
  ASSERT_EQ(timeline.size(), 2u);
  EXPECT_EQ(timeline[0].opcode, "tanh");
  EXPECT_EQ(timeline[0].seconds, 0);  // the hardware is unknown
}

}  // namespace
}  // namespace meshard

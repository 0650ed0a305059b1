#include "meshard/explain/cost/module_cost.h"

#include <gtest/gtest.h>

#include "meshard/hlo/executions.h"
#include "meshard/hlo/hlo_testutil.h"

namespace meshard {
namespace {

HloInstruction looping(std::int64_t id, std::string trips, std::vector<std::int64_t> calls) {
  HloInstruction one = calling(make_instruction(id, "while", f32_shape({4})), std::move(calls));
  if (!trips.empty()) one.backend_config = "{\"known_trip_count\":{\"n\":\"" + trips + "\"}}";
  return one;
}

HloInstruction negating(std::int64_t id, std::int64_t elements) {
  return make_instruction(id, "negate", f32_shape({elements}));
}

double flops_of(const HloModule& module) {
  ModuleIndex index(module);
  Executions executions = Executions::of(index).value();
  return ModuleCost(executions).total().flops();
}

// A matrix product in a loop of 12 inside a loop of 5.
TEST(ModuleCost, AProductInLoopsCountsEachTime) {
  HloInstruction dot = make_instruction(33, "dot", f32_shape({64, 32}), {31, 32});
  dot.dot = HloDotDimensions{{1}, {0}, {}, {}};
  HloModule module = make_module({{looping(1, "5", {1, 3})},
                                  {looping(11, "12", {2, 3})},
                                  {make_parameter(31, 0, f32_shape({64, 128})),
                                   make_parameter(32, 1, f32_shape({128, 32})), dot},
                                  {make_constant(41, 1)}});
  ModuleIndex index(module);
  Executions executions = Executions::of(index).value();
  ModuleCost cost(executions);
  EXPECT_EQ(cost.total().matrix_flops(), 5.0 * 12 * 2 * 64 * 128 * 32);
  EXPECT_EQ(cost.total().memory_bytes, 5.0 * 12 * 4 * (64 * 128 + 128 * 32 + 64 * 32));
  EXPECT_TRUE(cost.loops_known());
  EXPECT_EQ(cost.of(module.computations[1].instructions[0]).matrix_flops(),
            12.0 * 2 * 64 * 128 * 32);
}

TEST(ModuleCost, AnUnknownLoopCountsOnceAndIsSaid) {
  HloModule module = make_module({{looping(1, "", {1, 2})}, {negating(11, 7)}, {negating(21, 1)}});
  ModuleIndex index(module);
  Executions executions = Executions::of(index).value();
  ModuleCost cost(executions);
  EXPECT_EQ(cost.total().flops(), 7 + 1);
  EXPECT_FALSE(cost.loops_known());
}

TEST(ModuleCost, OfBranchesTheDearestCounts) {
  EXPECT_EQ(
      flops_of(make_module({{calling(make_instruction(1, "conditional", f32_shape({})), {1, 2, 3})},
                            {negating(11, 7)},
                            {negating(21, 100)},
                            {negating(31, 9)}})),
      100);
}

TEST(ModuleCost, FusionsComputeInsideAndMoveOutside) {
  HloModule module = make_module(
      {{make_parameter(1, 0, f32_shape({10})),
        calling(make_instruction(2, "fusion", f32_shape({10}), {1}), {1})},
       {make_parameter(11, 0, f32_shape({10})), make_instruction(12, "tanh", f32_shape({10}), {11}),
        make_instruction(13, "add", f32_shape({10}), {12, 11})}});
  ModuleIndex index(module);
  Executions executions = Executions::of(index).value();
  ModuleCost cost(executions);
  EXPECT_EQ(cost.total().flops(), 10);
  EXPECT_EQ(cost.total().transcendentals(), 10);
  EXPECT_EQ(cost.total().memory_bytes, 80);
}

TEST(ModuleCost, WhatAReductionAppliesCountsForEachElement) {
  EXPECT_EQ(flops_of(make_module(
                {{make_parameter(1, 0, f32_shape({4, 10})),
                  calling(make_instruction(2, "reduce", f32_shape({4}), {1}), {1})},
                 {make_parameter(11, 0, f32_shape({})), make_parameter(12, 1, f32_shape({})),
                  make_instruction(13, "add", f32_shape({}), {11, 12})}})),
            36);
}

}  // namespace
}  // namespace meshard

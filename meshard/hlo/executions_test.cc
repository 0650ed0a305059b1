#include "meshard/hlo/executions.h"

#include <gtest/gtest.h>

#include "meshard/hlo/hlo_testutil.h"

namespace meshard {
namespace {

HloInstruction loop_of(std::int64_t id, std::int64_t trips, std::vector<std::int64_t> calls) {
  HloInstruction one = calling(make_instruction(id, "while", f32_shape({4})), std::move(calls));
  if (trips >= 0)
    one.backend_config = "{\"known_trip_count\":{\"n\":\"" + std::to_string(trips) + "\"}}";
  return one;
}

ComputationRuns runs_of(const HloModule& module, std::int64_t computation) {
  ModuleIndex index(module);
  return *Executions::of(index).value().find(computation);
}

HloInstruction leaf(std::int64_t id) { return make_instruction(id, "negate", f32_shape({4})); }

TEST(Executions, NestedLoopsMultiplyAndCallsAdd) {
  HloModule module = make_module({
      {loop_of(1, 12, {1, 2}), calling(make_instruction(2, "call", f32_shape({4})), {3})},
      {loop_of(11, 5, {3, 4})},
      {leaf(21)},
      {leaf(31)},
      {leaf(41)},
  });
  EXPECT_EQ(runs_of(module, 0).executions, 1);
  EXPECT_EQ(runs_of(module, 1).executions, 12);
  EXPECT_EQ(runs_of(module, 2).executions, 13);  // once more than the body
  EXPECT_EQ(runs_of(module, 3).executions, 12 * 5 + 1);
  EXPECT_EQ(runs_of(module, 4).executions, 12 * 6);
  EXPECT_EQ(runs_of(module, 3).loop_depth, 2);
  EXPECT_TRUE(runs_of(module, 3).known);
}

TEST(Executions, AnUnknownLoopCountsOnce) {
  HloModule module = make_module({
      {loop_of(1, -1, {1, 2})},
      {loop_of(11, 5, {3, 2})},
      {leaf(21)},
      {leaf(31)},
  });
  EXPECT_EQ(runs_of(module, 3).executions, 5);
  EXPECT_FALSE(runs_of(module, 3).known);
  ModuleIndex index(module);
  Executions executions = Executions::of(index).value();
  EXPECT_EQ(executions.trip_count(module.computations[0].instructions[0]), std::nullopt);
  EXPECT_EQ(executions.trip_count(module.computations[1].instructions[0]), 5);
}

TEST(Executions, FusionsBranchesAndAppliedComputations) {
  HloModule module = make_module({
      {calling(make_instruction(1, "fusion", f32_shape({4})), {1}),
       calling(make_instruction(2, "conditional", f32_shape({4})), {2, 3}),
       calling(make_instruction(3, "call", f32_shape({4})), {3}),
       calling(make_instruction(4, "async-start", f32_shape({4})), {5}),
       calling(make_instruction(5, "async-done", f32_shape({4}), {4}), {5})},
      {calling(make_instruction(11, "reduce", f32_shape({})), {4})},
      {leaf(21)},
      {leaf(31)},
      {leaf(41)},
      {leaf(51)},
      {leaf(61)},  // never called
  });
  EXPECT_TRUE(runs_of(module, 1).fused);
  EXPECT_TRUE(runs_of(module, 4).fused);
  EXPECT_TRUE(runs_of(module, 4).applied);
  EXPECT_TRUE(runs_of(module, 2).conditional);
  EXPECT_FALSE(runs_of(module, 3).conditional);
  EXPECT_EQ(runs_of(module, 3).executions, 2);
  EXPECT_EQ(runs_of(module, 5).executions, 1);  // async-done is not another call
  ModuleIndex index(module);
  EXPECT_EQ(Executions::of(index).value().find(6), nullptr);
}

TEST(Executions, StopsAtABoundInsteadOfOverflowing) {
  std::vector<std::vector<HloInstruction>> computations;
  for (std::int64_t i = 0; i < 100; ++i) computations.push_back({loop_of(i, 1 << 30, {i + 1})});
  computations.push_back({leaf(1000)});
  EXPECT_EQ(runs_of(make_module(computations), 100).executions, std::int64_t{1} << 52);
}

TEST(Executions, CirclesAndDepthAreErrors) {
  HloModule circle = make_module({{calling(leaf(1), {1})}, {calling(leaf(2), {0})}});
  ModuleIndex index(circle);
  EXPECT_EQ(Executions::of(index).error().code(), ErrorCode::kDataLoss);
  std::vector<std::vector<HloInstruction>> deep;
  for (std::int64_t i = 0; i < 1000; ++i) deep.push_back({calling(leaf(i), {i + 1})});
  HloModule tower = make_module(deep);
  ModuleIndex tower_index(tower);
  EXPECT_EQ(Executions::of(tower_index).error().code(), ErrorCode::kDataLoss);
}

}  // namespace
}  // namespace meshard

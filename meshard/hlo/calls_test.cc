#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/hlo/executions.h"
#include "meshard/hlo/hlo_testutil.h"

namespace meshard {
namespace {

TEST(Calls, CallersStandFirstAndEachOnce) {
  HloModule module = make_module({
      {calling(make_instruction(1, "call", f32_shape({})), {2}),
       calling(make_instruction(2, "fusion", f32_shape({})), {1})},
      {make_instruction(11, "negate", f32_shape({}))},
      {calling(make_instruction(21, "fusion", f32_shape({})), {1})},
      {make_instruction(31, "negate", f32_shape({}))},
  });
  ModuleIndex index(module);
  Calls calls = Calls::of(index).value();
  std::vector<std::int64_t> order;
  for (const ReachedComputation& each : calls.callers_first())
    order.push_back(each.index->computation().id);
  EXPECT_THAT(order, testing::ElementsAre(0, 2, 1));
  EXPECT_EQ(calls.find(3), nullptr);
  EXPECT_EQ(calls.find(1)->num_calls, 2);
  EXPECT_EQ(calls.find(1)->kind, CallKind::kFusion);
  EXPECT_EQ(calls.find(2)->call->id, 1);
  EXPECT_EQ(calls.find(0)->call, nullptr);
}

TEST(Calls, KindsOfCalls) {
  auto kind = [](std::string opcode, std::size_t number) {
    return call_kind(make_instruction(1, std::move(opcode), f32_shape({})), number);
  };
  EXPECT_EQ(kind("while", 0), CallKind::kLoopBody);
  EXPECT_EQ(kind("while", 1), CallKind::kLoopCondition);
  EXPECT_EQ(kind("conditional", 2), CallKind::kBranch);
  EXPECT_EQ(kind("fusion", 0), CallKind::kFusion);
  EXPECT_EQ(kind("async-start", 0), CallKind::kCall);
  EXPECT_EQ(kind("reduce", 0), CallKind::kApplied);
}

}  // namespace
}  // namespace meshard

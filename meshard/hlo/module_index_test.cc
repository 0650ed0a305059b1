#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/hlo/hlo_testutil.h"
#include "meshard/hlo/module.h"

namespace meshard {
namespace {

std::vector<std::int64_t> index_ids(const std::vector<const HloInstruction*>& all) {
  std::vector<std::int64_t> ids;
  for (const HloInstruction* each : all) ids.push_back(each->id);
  return ids;
}

TEST(ModuleIndex, FindsByIdAndFollowsOperandsAndUsers) {
  HloModule module =
      make_module({{
                       make_parameter(4, 0, f32_shape({})),
                       make_instruction(7, "negate", f32_shape({}), {4}),
                       calling(make_instruction(9, "fusion", f32_shape({}), {4, 7, 99}), {1}),
                   },
                   {make_parameter(4, 0, f32_shape({}))}});
  ModuleIndex index(module);
  const InstructionIndex& entry = index.entry();
  EXPECT_EQ(entry.find(7)->opcode, "negate");
  EXPECT_EQ(entry.find(99), nullptr);
  EXPECT_EQ(entry.root()->id, 9);
  EXPECT_THAT(index_ids(entry.operands(*entry.find(9))), testing::ElementsAre(4, 7));
  EXPECT_EQ(entry.operand(*entry.find(9), 1)->id, 7);
  EXPECT_EQ(entry.operand(*entry.find(9), 2), nullptr);
  EXPECT_THAT(index_ids(entry.users(*entry.find(4))), testing::ElementsAre(7, 9));
  EXPECT_EQ(index.called(*entry.root())->computation().id, 1);
  EXPECT_EQ(index.called(*entry.root(), 1), nullptr);
  EXPECT_EQ(index.find(2), nullptr);
}

TEST(ModuleIndex, RunsInTheOrderOfTheScheduleIfThatNamesAll) {
  HloModule module = make_module(
      {{make_instruction(1, "a", f32_shape({})), make_instruction(2, "b", f32_shape({})),
        make_instruction(3, "c", f32_shape({}))}});
  auto order = [&](std::vector<std::int64_t> schedule) {
    module.computations[0].schedule = std::move(schedule);
    return index_ids(InstructionIndex(module.computations[0]).in_run_order());
  };
  EXPECT_THAT(order({3, 1, 2}), testing::ElementsAre(3, 1, 2));
  EXPECT_THAT(order({}), testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(order({3, 3, 1}), testing::ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace meshard

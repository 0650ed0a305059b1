#include <gtest/gtest.h>

#include "meshard/explain/predict/module_program.h"

namespace meshard {
namespace {

TEST(RuledProgram, LoopsMultiply) {
  RuledProgram program;
  std::size_t outer = program.add_loop(0, 12), inner = program.add_loop(outer, 4);
  std::size_t unknown = program.add_loop(outer, std::nullopt);
  EXPECT_EQ(program.regions[outer].executions, 12);
  EXPECT_EQ(program.regions[inner].executions, 48);
  EXPECT_TRUE(program.regions[inner].executions_known);
  EXPECT_EQ(program.regions[unknown].executions, 12);
  EXPECT_FALSE(program.regions[unknown].executions_known);
  EXPECT_FALSE(program.regions[program.add_loop(unknown, 2)].executions_known);
}

TEST(RuledProgram, Inside) {
  RuledProgram program;
  std::size_t loop = program.add_loop(0, 12), other = program.add_loop(0, 12);
  std::size_t branch = program.add_branch(loop, std::nullopt);
  EXPECT_TRUE(program.is_inside(branch, branch));
  EXPECT_TRUE(program.is_inside(branch, loop));
  EXPECT_TRUE(program.is_inside(branch, 0));
  EXPECT_FALSE(program.is_inside(branch, other));
  EXPECT_FALSE(program.is_inside(loop, branch));
}

TEST(RuledProgram, OfAllBranchesTheOneWithTheMost) {
  RuledProgram program;
  std::size_t first = program.add_branch(0, std::nullopt), second = program.add_branch(0, first);
  // The first branch has a loop that moves more than the second branch does.
  std::size_t loop = program.add_loop(first, 3);
  // The second branch has branches of its own.
  std::size_t inner = program.add_branch(second, std::nullopt);
  std::size_t other = program.add_branch(second, inner);
  EXPECT_EQ(program.regions[loop].executions, 3);
  EXPECT_TRUE(program.regions[loop].conditional);
  EXPECT_FALSE(program.regions[loop].first_branch.has_value());
  std::vector<double> bytes{100, 1, 5, 20, 4, 6};
  EXPECT_EQ(regions_with_most(program, bytes),
            (std::vector<bool>{true, true, false, true, false, false}));
  bytes[second] = 50;
  EXPECT_EQ(regions_with_most(program, bytes),
            (std::vector<bool>{true, false, true, false, false, true}));
  bytes[other] = bytes[inner];
  EXPECT_EQ(regions_with_most(program, bytes),
            (std::vector<bool>{true, false, true, false, true, false}));
}

}  // namespace
}  // namespace meshard

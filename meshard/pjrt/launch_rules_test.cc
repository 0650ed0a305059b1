#include "meshard/pjrt/launch_rules.h"

#include <gtest/gtest.h>

#include <set>

namespace meshard::pjrt {
namespace {

TEST(LaunchRules, TheCpuPluginIsSparedAndOthersAreNot) {
  LaunchRules cpu = launch_rules("cpu", 81);
  EXPECT_EQ(cpu.max_in_flight, 31) << "32 un-awaited launches are the most that do not hang";
  EXPECT_TRUE(cpu.error_wedges_client);
  EXPECT_FALSE(cpu.parts_start_together);
  LaunchRules newer = launch_rules("cpu", 106);
  EXPECT_TRUE(newer.parts_start_together);
  EXPECT_TRUE(newer.loaded_parts_run_inline);
  newer.parts_start_together = newer.loaded_parts_run_inline = false;
  EXPECT_EQ(newer, cpu);
  EXPECT_EQ(launch_rules("tpu", 81), LaunchRules());
  EXPECT_EQ(launch_rules("CPU", 81), LaunchRules()) << "names are in lower case";
}

TEST(LaunchRules, EveryRowSaysWhy) {
  for (const LaunchRuleRow& row : launch_rule_table()) {
    EXPECT_FALSE(row.why.empty());
    EXPECT_LE(row.first_minor, row.last_minor);
    EXPECT_NE(row.rules, LaunchRules()) << "a row without a rule";
  }
}

TEST(LaunchRules, LaunchIdsArePositiveAndDistinct) {
  std::set<int> seen;
  for (int i = 0; i < 1000; ++i) {
    int id = next_launch_id();
    EXPECT_GT(id, 0);
    EXPECT_TRUE(seen.insert(id).second);
  }
}

}  // namespace
}  // namespace meshard::pjrt

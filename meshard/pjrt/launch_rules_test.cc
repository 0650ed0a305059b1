#include "meshard/pjrt/launch_rules.h"

#include <gtest/gtest.h>

#include <set>

namespace meshard::pjrt {
namespace {

LaunchRules by_table(std::string_view platform, int minor) {
  return launch_rules(platform, minor, quirks_of_table(platform, minor));
}

TEST(LaunchRules, TheCpuPluginIsSparedAndOthersAreNot) {
  LaunchRules cpu = by_table("cpu", 81);
  EXPECT_EQ(cpu.max_in_flight, 31) << "32 un-awaited launches are the most that do not hang";
  EXPECT_TRUE(cpu.error_wedges_client);
  EXPECT_FALSE(cpu.parts_start_together);
  LaunchRules newer = by_table("cpu", 106);
  EXPECT_TRUE(newer.parts_start_together);
  EXPECT_TRUE(newer.loaded_parts_run_inline);
  EXPECT_FALSE(newer.device_launch_may_run_inline);
  newer.parts_start_together = newer.loaded_parts_run_inline = false;
  newer.device_launch_may_run_inline = true;
  EXPECT_EQ(newer, cpu);
  EXPECT_EQ(by_table("tpu", 81), LaunchRules());
  EXPECT_EQ(by_table("CPU", 81), LaunchRules()) << "names are in lower case";
}

TEST(LaunchRules, EveryQuirkOfLaunchesChangesARule) {
  std::span<const QuirkRow> rows = quirk_table();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    LaunchRules with = launch_rules("tpu", 81, QuirkSet().with(static_cast<Quirk>(i)));
    EXPECT_EQ(with != LaunchRules(), rows[i].effect == QuirkEffect::kLaunch) << rows[i].name;
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

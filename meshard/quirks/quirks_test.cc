#include "meshard/quirks/quirks.h"

#include <gmock/gmock.h>

#include <set>

namespace meshard {
namespace {

using testing::HasSubstr;

TEST(Quirks, AreDescribed) {
  std::set<std::string_view> names;
  for (const QuirkRow& row : quirk_table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.fault.empty() || row.instead.empty() || row.seen.empty()) << row.name;
    EXPECT_LE(row.first_minor, row.last_minor) << row.name;
    EXPECT_EQ(row.effect == QuirkEffect::kCompile, !row.option_off.empty()) << row.name;
    EXPECT_NE(row.name, "all");
  }
}

TEST(Quirks, ApplyWhereTheirRowSays) {
  EXPECT_TRUE(quirks_of_table("").has(Quirk::kWindowFills));
  EXPECT_TRUE(quirks_of_table("tpu", 116).has(Quirk::kWindowFills));
  EXPECT_TRUE(quirks_of_table("cpu").has(Quirk::kSharedValues));
  EXPECT_FALSE(quirks_of_table("").has(Quirk::kSharedValues)) << "the platform is not known";
  EXPECT_FALSE(quirks_of_table("cuda", 116).has(Quirk::kSharedValues));
  EXPECT_FALSE(quirks_of_table("c").has(Quirk::kSharedValues));
  EXPECT_FALSE(quirks_of_table("cpu", 81).has(Quirk::kPartsStartTogether));
  EXPECT_TRUE(quirks_of_table("cpu", 82).has(Quirk::kPartsStartTogether));
  EXPECT_TRUE(quirks_of_table("cpu").has(Quirk::kPartsStartTogether)) << "any version";
}

TEST(Quirks, AreTurnedOffAndOnByName) {
  QuirkSet cpu = quirks_of_table("cpu", 81);
  EXPECT_EQ(changed_quirks(cpu, "").value(), cpu);
  EXPECT_EQ(changed_quirks(cpu, "-window-fills,-launch-queue").value(),
            cpu.without(Quirk::kWindowFills).without(Quirk::kLaunchQueue));
  EXPECT_EQ(changed_quirks(cpu, "+parts-start-together").value(),
            cpu.with(Quirk::kPartsStartTogether));
  EXPECT_EQ(changed_quirks(cpu, "-all,+window-fills").value().to_string(), "window-fills");
  EXPECT_EQ(changed_quirks(cpu, "-all").value().to_string(), "none");
}

TEST(Quirks, OtherTextsAreErrors) {
  EXPECT_THAT(
      changed_quirks({}, "-windowfills").error().message(),
      HasSubstr("there is no quirk \"windowfills\": the nearest names are \"window-fills\""));
  EXPECT_THAT(changed_quirks({}, "window-fills").error().message(),
              HasSubstr("write -window-fills to turn it off, or +window-fills to turn it on"));
}

TEST(Quirks, AreReadFromTheEnvironment) {
  ::setenv("MESHARD_QUIRKS", "-window-fills", 1);
  EXPECT_EQ(quirks_of("cpu", 81).value(), quirks_of_table("cpu", 81).without(Quirk::kWindowFills));
  ::unsetenv("MESHARD_QUIRKS");
  EXPECT_EQ(quirks_of("cpu", 81).value(), quirks_of_table("cpu", 81));
}

}  // namespace
}  // namespace meshard

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/report/diff.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> over(const ReportDiff& diff, std::string_view limits) {
  return over_limits(diff, parse_diff_limits(limits).value());
}

// 1000 bytes of all-reduce over "model" before, 1100 after; memory 200 and 210; 1 ms and 1.5 ms.
ReportDiff grown_diff() {
  ReportDiff diff;
  diff.before.collective_bytes = 1000;
  diff.after.collective_bytes = 1100;
  diff.collectives = {{.kind = CollectiveKind::kAllReduce,
                       .axes = "\"model\"",
                       .place = "a.py:1",
                       .before = {.count = 1, .executions = 1, .bytes = 1000},
                       .after = {.count = 1, .executions = 1, .bytes = 1100}}};
  diff.memory = {{.part = "total", .before = 200, .after = 210}};
  diff.times = {{.part = "at least", .before = 1e-3, .after = 1.5e-3}};
  return diff;
}

TEST(DiffLimits, ParseAndPrint) {
  std::vector<DiffLimit> limits =
      parse_diff_limits("collectives;bytes 5%; memory\t2.5 % ;\n time 200%; shardings").value();
  ASSERT_EQ(limits.size(), 5u);
  EXPECT_EQ(limits[1], (DiffLimit{DiffLimitPart::kBytes, 0.05}));
  std::vector<std::string> texts;
  for (const DiffLimit& one : limits) texts.push_back(one.to_string());
  EXPECT_THAT(texts,
              ElementsAre("collectives", "bytes 5%", "memory 2.5%", "time 200%", "shardings"));
  EXPECT_TRUE(parse_diff_limits(" ; ").value().empty());
}

TEST(DiffLimits, OfOtherTextsAreErrors) {
  for (std::string_view text : {"byte 5%", "bytes 5", "bytes -5%", "bytes 5%%", "bytes %",
                                "bytes 1e3%", "shardings 5%", "5%", "bytes5%", "bytes 1.2.3%"}) {
    Result<std::vector<DiffLimit>> limits = parse_diff_limits(text);
    ASSERT_FALSE(limits.ok()) << text;
    EXPECT_EQ(limits.error().code(), ErrorCode::kInvalidArgument) << text;
    EXPECT_THAT(limits.error().message(), HasSubstr(text));
  }
}

TEST(DiffLimits, EachPartHasItsOwn) {
  ReportDiff diff = grown_diff();
  EXPECT_THAT(over(diff, "bytes 10%; memory 5%; time 50%; collectives 10%; shardings"), IsEmpty());
  EXPECT_THAT(over(diff, "bytes 9.9%"), ElementsAre("bytes: 1000 B → 1.1 KiB (+100 B, +10%), at "
                                                    "most 9.9% more"));
  EXPECT_THAT(over(diff, "memory"), ElementsAre("memory: 200 B → 210 B (+10 B, +5%), no more"));
  EXPECT_THAT(over(diff, "time 49%"), ElementsAre(HasSubstr("time: 1 ms → 1.5 ms (+50%)")));
  EXPECT_THAT(over(diff, "collectives"), ElementsAre(HasSubstr("all-reduce on \"model\": 1000 B")));
  diff.placements = {{.value = "argument 0", .before = "a", .after = "b"}};
  EXPECT_THAT(over(diff, "shardings"), ElementsAre("shardings: 1 changed"));
}

TEST(DiffLimits, TimeIsTheEstimateWhereThereIsOne) {
  // The bound is the same, but a collective is no longer hidden.
  ReportDiff diff = grown_diff();
  diff.times[0].after = diff.times[0].before;
  EXPECT_THAT(over(diff, "time"), IsEmpty());
  diff.estimates = {{.part = "estimated", .before = 2e-3, .after = 3e-3}};
  EXPECT_THAT(over(diff, "time 40%"), ElementsAre("time: 2 ms → 3 ms (+50%), at most 40% more"));
}

TEST(DiffLimits, LessIsNeverOver) {
  ReportDiff diff = grown_diff();
  std::swap(diff.before.collective_bytes, diff.after.collective_bytes);
  std::swap(diff.collectives[0].before, diff.collectives[0].after);
  std::swap(diff.memory[0].before, diff.memory[0].after);
  std::swap(diff.times[0].before, diff.times[0].after);
  EXPECT_THAT(over(diff, "collectives; bytes; memory; time"), IsEmpty());
}

TEST(DiffLimits, CombinedCollectivesAreNotMore) {
  // Two all-reduces from two lines become one from both lines, with the same bytes.
  ReportDiff diff;
  diff.before.collectives = 2, diff.before.collective_bytes = 300;
  diff.after.collectives = 1, diff.after.collective_bytes = 300;
  auto all_reduce = [](const char* place, std::int64_t before, std::int64_t after) {
    CollectiveChange one;
    one.kind = CollectiveKind::kAllReduce, one.axes = "\"data\"", one.place = place;
    if (before) one.before = {.count = 1, .executions = 1, .bytes = before};
    if (after) one.after = {.count = 1, .executions = 1, .bytes = after};
    return one;
  };
  diff.collectives = {all_reduce("a.py:1", 100, 0), all_reduce("a.py:2", 200, 0),
                      all_reduce("a.py:1, a.py:2", 0, 300)};
  EXPECT_THAT(over(diff, "collectives; bytes"), IsEmpty());
  std::swap(diff.before, diff.after);  // and apart again
  for (CollectiveChange& one : diff.collectives) std::swap(one.before, one.after);
  EXPECT_THAT(over(diff, "collectives; bytes"), IsEmpty());
}

TEST(DiffLimits, ANewKindOrNewAxesAreMore) {
  ReportDiff diff = grown_diff();
  diff.collectives[0].after.bytes = 1000;
  diff.collectives.push_back({.kind = CollectiveKind::kAllGather,
                              .axes = "\"data\"",
                              .place = "a.py:2",
                              .before = {},
                              .after = {.count = 1, .executions = 1, .bytes = 8}});
  EXPECT_THAT(over(diff, "collectives 1000%"),
              ElementsAre("all-gather on \"data\": 0 B → 8 B (+8 B), at most 1000% more"));
}

TEST(DiffLimits, WhatIsNotKnownIsNotWithinALimit) {
  ReportDiff diff = grown_diff();
  diff.memory.clear();
  diff.times[0].before = 0;
  EXPECT_THAT(over(diff, "memory; time"), ElementsAre("memory: not known for both programs",
                                                      "time: not known for both programs"));
}

}  // namespace
}  // namespace meshard

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "meshard/report/diff_text.h"
#include "meshard/report/sample_report_testutil.h"

namespace meshard {
namespace {

using testing::HasSubstr;
using testing::Not;

ReportDiff markdown_diff() {
  ReportDiff diff;
  diff.before = {.program = "step on mesh<data=2> for v5e:2x4",
                 .bound_by = "compute",
                 .collectives = 3,
                 .collective_bytes = 2048,
                 .seconds = 1e-3};
  diff.after = diff.before;
  diff.after.collectives = 5;
  diff.after.collective_bytes = 3072;
  diff.after.bound_by = "ICI";
  diff.collectives = {{.kind = CollectiveKind::kAllGather,
                       .axes = "\"data\"",
                       .place = "step.py:12",
                       .before = {},
                       .after = {.count = 2, .executions = 2, .bytes = 1024}},
                      {.kind = CollectiveKind::kAllReduce,
                       .axes = "\"data\"",
                       .place = "step.py:13",
                       .before = {.count = 3, .executions = 3, .bytes = 2048},
                       .after = {.count = 3, .executions = 3, .bytes = 2048}}};
  diff.memory = {{.part = "total", .before = 4096, .after = 4096},
                 {.part = "peak", .before = 4096, .after = 5120},
                 {.part = "temporaries", .before = 0, .after = 1024}};
  diff.times = {{.part = "at least", .before = 1e-3, .after = 1.5e-3}};
  diff.placements = {{.value = "argument 1 w", .before = "f32[16] P()", .after = ""}};
  diff.reshards = {{.text = "gather of f32[16]", .before = 0, .after = 1}};
  return diff;
}

// The rows of all tables, each with its number of columns; a pipe that is not escaped is a border.
std::vector<std::size_t> columns_of_rows(const std::string& page) {
  std::vector<std::size_t> found;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with('|'))
      found.push_back(static_cast<std::size_t>(std::count(line.begin(), line.end(), '|')) - 1);
  return found;
}

TEST(DiffMarkdown, SaysWhatChanged) {
  std::string page = to_markdown(markdown_diff());
  EXPECT_TRUE(
      page.starts_with("### <code>step on mesh&#60;data=2&#62; for v5e:2x4</code>\n\n"
                       "**collectives +2; collective bytes +1 KiB (+50%); peak memory +1 "
                       "KiB (+25%); time +500 us (+50%)**\n"))
      << page;
  EXPECT_THAT(page, HasSubstr("| collective bytes | 2 KiB | 3 KiB | +1 KiB (+50%) |\n"));
  EXPECT_THAT(page, HasSubstr("| memory | 4 KiB | 4 KiB |  |\n"));
  EXPECT_THAT(page, HasSubstr("| bound by | compute | ICI |  |\n"));
  EXPECT_THAT(page,
              HasSubstr("<details><summary>Collectives: 1 changed, 3 the same</summary>\n\n"));
  EXPECT_THAT(page,
              HasSubstr("| new | all-gather | <code>\"data\"</code> | <code>step.py:12</code> "
                        "| 0 → 2 | 0 B | 1 KiB |\n"));
  EXPECT_THAT(page, HasSubstr("| <code>temporaries</code> | 0 B | 1 KiB | +1 KiB |\n"));
  EXPECT_THAT(page, HasSubstr("| <code>argument 1 w</code> | <code>f32&#91;16&#93; P()</code> | "
                              "none |\n"));
  EXPECT_THAT(page, HasSubstr("| <code>gather of f32&#91;16&#93;</code> | 0 | 1 |\n"));
  EXPECT_THAT(page, Not(HasSubstr("before: ")));  // the programs have one name
  EXPECT_THAT(page, Not(HasSubstr("step.py:13")));
}

TEST(DiffMarkdown, OfTheSamePrograms) {
  ReportDiff diff = markdown_diff();
  diff.after = diff.before;
  diff.collectives.erase(diff.collectives.begin());
  diff.memory.clear(), diff.times.clear(), diff.placements.clear(), diff.reshards.clear();
  EXPECT_EQ(to_markdown(diff),
            "### <code>step on mesh&#60;data=2&#62; for v5e:2x4</code>\n\n**No difference**\n");
  diff.before.program = "other";
  EXPECT_THAT(to_markdown(diff), HasSubstr("\nbefore: <code>other</code>\n"));
}

TEST(DiffMarkdown, ListsWhatIsOverTheLimits) {
  std::string page = to_markdown(markdown_diff(), {.over_limits = {"bytes: 2 KiB → 3 KiB", "b"}});
  EXPECT_THAT(page, HasSubstr("\nOver the limits:\n\n- <code>bytes: 2 KiB → 3 KiB</code>\n"
                              "- <code>b</code>\n"));
}

TEST(DiffMarkdown, LongTablesAreCutAndCounted) {
  ReportDiff diff = markdown_diff();
  for (int i = 0; i < 30; ++i)
    diff.reshards.push_back({.text = "r" + std::to_string(i), .before = 1, .after = 0});
  std::string page = to_markdown(diff, {.over_limits = {}, .most_rows = 4});
  EXPECT_THAT(page, HasSubstr("Reshards: 31 changed"));
  EXPECT_THAT(page, HasSubstr("<code>r2</code> | 1 | 0 |\n\nand 27 more\n"));
  EXPECT_THAT(page, Not(HasSubstr("<code>r3</code>")));
}

TEST(DiffMarkdown, ALongPageLeavesTablesOut) {
  ReportDiff diff = markdown_diff();
  for (int i = 0; i < 20; ++i)
    diff.reshards.push_back({.text = std::string(500, '|'), .before = 1, .after = 0});
  std::string page = to_markdown(diff, {.over_limits = {}, .most_characters = 4000});
  EXPECT_LE(page.size(), 4100u);
  EXPECT_THAT(page, HasSubstr("1 table is left out, because the page would be too long."));
  EXPECT_THAT(page, HasSubstr("Shardings: 1 changed"));
}

// No name from a module can be anything but text.
TEST(DiffMarkdown, NamesCannotAddMarkup) {
  const std::string hostile =
      "a|b`c*d_e~~f~~[g](http://h.i)<img src=x onerror=y>&amp;\n\n# j\r\n@k $l$ www.m.n \\| #1";
  ReportDiff diff = markdown_diff();
  diff.before.program = "before " + hostile;
  diff.after.program = hostile;
  diff.collectives[0].axes = hostile;
  diff.collectives[0].place = hostile;
  diff.memory[1].part = hostile;
  diff.placements[0].value = diff.placements[0].before = hostile;
  diff.reshards[0].text = hostile;
  std::string page = to_markdown(diff, {.over_limits = {hostile}});

  // All texts are in <code>, and have no character that Markdown, HTML or GitHub reads.
  std::regex code("<code>(.*?)</code>");
  std::string rest = std::regex_replace(page, code, "");
  EXPECT_THAT(rest, Not(HasSubstr("onerror")));
  for (std::sregex_iterator one(page.begin(), page.end(), code), end; one != end; ++one) {
    std::string text = std::regex_replace((*one)[1].str(), std::regex("&#[0-9]+;"), "");
    EXPECT_EQ(text.find_first_of("|`*_~[]<>&\\#@$\n\r"), std::string::npos) << text;
    EXPECT_THAT(text, Not(HasSubstr("://")));
    EXPECT_THAT(text, Not(HasSubstr("www.")));
  }
  // No row has more columns than its table's heading.
  std::vector<std::size_t> columns = columns_of_rows(page);
  std::vector<std::size_t> plain = columns_of_rows(to_markdown(markdown_diff()));
  std::erase(columns, 4u), std::erase(plain, 4u);  // the table of memory has another row
  EXPECT_EQ(columns, plain);
}

TEST(DiffMarkdown, LongNamesAreCutBetweenCharacters) {
  ReportDiff diff = markdown_diff();
  std::string long_name;
  for (int i = 0; i < 200; ++i) long_name += "→";  // three bytes each
  diff.reshards[0].text = "a" + long_name;
  std::string page = to_markdown(diff);
  // 240 bytes hold "a" and 79 arrows.
  std::string kept = "a";
  for (int i = 0; i < 79; ++i) kept += "→";
  EXPECT_THAT(page, HasSubstr("<code>" + kept + "…</code>"));
}

TEST(DiffMarkdown, OfReports) {
  ProgramReport before(sample_parts());
  ProgramReport::Parts changed = sample_parts();
  changed.collectives.pop_back();
  changed.logical_collectives.pop_back();
  std::string page = to_markdown(diff(before, ProgramReport(changed)));
  EXPECT_THAT(page, HasSubstr("**collectives -1"));
  EXPECT_THAT(page, HasSubstr("| gone | "));
}

}  // namespace
}  // namespace meshard

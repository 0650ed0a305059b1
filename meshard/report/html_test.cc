// Tests what the page contains; tests/browser opens it in a browser.
#include "meshard/report/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/report/json.h"
#include "meshard/report/sample_report_testutil.h"

namespace meshard {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(ReportPage, ContainsTheReportAndFillsEveryPlace) {
  std::string page = to_html(ProgramReport(sample_parts()));
  EXPECT_THAT(page, HasSubstr("<title>train_step</title>"));
  std::string json = to_json(ProgramReport(sample_parts()));
  for (std::size_t at = json.find('<'); at != std::string::npos; at = json.find('<'))
    json.replace(at, 1, "\\u003c");  // equivalent in JSON
  EXPECT_THAT(page, HasSubstr(json));
  for (const char* place : {"{{title}}", "{{text}}", "{{json}}", "{{script", "{{style"})
    EXPECT_THAT(page, Not(HasSubstr(place)));
}

TEST(ReportPage, NamesNoOtherPlace) {
  std::string page = to_html(ProgramReport(sample_parts()));
  EXPECT_THAT(page, Not(HasSubstr("://")));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(HasSubstr("url(")));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(ReportPage, HostileTextsStayText) {
  std::string page = to_html(ProgramReport(hostile_parts()));
  // Only the page template's own elements appear: two scripts with one end tag each.
  EXPECT_EQ(count(page, "<script"), 2u);
  EXPECT_EQ(count(page, "</script"), 2u);
  EXPECT_EQ(count(page, "<img"), 0u);
  EXPECT_EQ(count(page, "<!--"), 0u);
  EXPECT_EQ(count(page, "\x01"), 0u);
  EXPECT_EQ(count(page, "\xff"), 0u);
  EXPECT_THAT(page, HasSubstr("<title>&lt;/script&gt;&lt;script&gt;document.title='broken'"));
  EXPECT_THAT(page, HasSubstr("\\u003c/script>"));
}

TEST(ReportPage, TellsAsTextWhatNeedsNoScript) {
  std::string page = to_html(ProgramReport(sample_parts()));
  EXPECT_EQ(count(page, "<pre"), 2u);
  EXPECT_THAT(page, HasSubstr("<noscript>"));
  EXPECT_THAT(page, HasSubstr("12 x P(&quot;data&quot;, &quot;model&quot;), "));
}

}  // namespace
}  // namespace meshard

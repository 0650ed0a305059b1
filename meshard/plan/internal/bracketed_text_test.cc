#include "meshard/plan/internal/bracketed_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/base/error.h"

namespace meshard::internal {
namespace {

TEST(BracketedText, MatchingEnd) {
  EXPECT_EQ(matching_end("(a)b", 0), 3u);
  EXPECT_EQ(matching_end("x<[{\">\\\"\"}]>y", 1), 12u);
  EXPECT_EQ(matching_end("(a -> b)", 0), 8u);
  EXPECT_EQ(matching_end("(a <= b)", 0), 8u);
  EXPECT_THROW(matching_end("(a", 0), Error);
  EXPECT_THROW(matching_end("(a]", 0), Error);
  EXPECT_THROW(matching_end("(\"a)", 0), Error);
}

std::vector<std::string> items(std::string_view text) {
  std::vector<std::string> out;
  for (const auto& [from, to] : split_list(text, 0, text.size()))
    out.emplace_back(text.substr(from, to - from));
  return out;
}

TEST(BracketedText, Lists) {
  EXPECT_THAT(items("a, (b, c) d , \"e,f\""), testing::ElementsAre("a", "(b, c) d", "\"e,f\""));
  EXPECT_THAT(items("  "), testing::IsEmpty());
  EXPECT_THAT(items("tensor<2x{a,b}>"), testing::ElementsAre("tensor<2x{a,b}>"));
}

TEST(BracketedText, WordsOutsideOfStringsAndComments) {
  EXPECT_EQ(find_outside_strings("\"main\" // main\n main", "main", 0), 16u);
  EXPECT_EQ(find_outside_strings("\"main\"", "main", 0), std::string_view::npos);
}

TEST(BracketedText, Strings) {
  EXPECT_EQ(unescaped("\"a\\\"b\\\\c\\0Ad\"", 0), "a\"b\\c\nd");
  EXPECT_EQ(type_end("tensor<2x 3> loc", 0, 16), 12u);
  EXPECT_EQ(type_end("i32{", 0, 4), 3u);
  EXPECT_EQ(skip_blanks(" \n a", 0), 3u);
}

}  // namespace
}  // namespace meshard::internal

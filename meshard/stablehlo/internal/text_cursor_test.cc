#include "meshard/stablehlo/internal/text_cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/matchers.h"

namespace meshard::stablehlo {
namespace {

TEST(TextCursor, BracketsUpToTheMatchingOne) {
  auto balanced = [](std::string_view text, std::size_t at) {
    TextCursor cursor(text);
    cursor.jump(at);
    return std::string(cursor.balanced());
  };
  EXPECT_EQ(balanced("(a)b", 0), "(a)");
  EXPECT_EQ(balanced("x<[{\">\\\"\"}]>y", 1), "<[{\">\\\"\"}]>");
  EXPECT_EQ(balanced("(a -> b)", 0), "(a -> b)");
  EXPECT_EQ(balanced("(a <= b)", 0), "(a <= b)");
  auto refused = [&](std::string_view text, std::string part) {
    return throws_error([&] { balanced(text, 0); }, ErrorCode::kDataLoss, {part});
  };
  EXPECT_TRUE(refused("(a", "`(` at byte 0 is not closed"));
  EXPECT_TRUE(refused("(a]", "unmatched `]`"));
  EXPECT_TRUE(refused("(\"a)", "unterminated string"));
}

std::vector<std::string> items(std::string_view text) {
  TextCursor cursor(text);
  std::vector<std::string> out;
  while (!cursor.at_end()) {
    out.emplace_back(cursor.value());
    if (!cursor.accept(",")) break;
  }
  return out;
}

TEST(TextCursor, Lists) {
  EXPECT_THAT(items("a, (b, c) d , \"e,f\""), testing::ElementsAre("a", "(b, c) d", "\"e,f\""));
  EXPECT_THAT(items("  "), testing::IsEmpty());
  EXPECT_THAT(items("tensor<2x{a,b}>"), testing::ElementsAre("tensor<2x{a,b}>"));
}

TEST(TextCursor, WordsOutsideOfStringsAndComments) {
  TextCursor cursor("\"main\" // main\n main");
  EXPECT_EQ(cursor.token(), "\"main\"");
  EXPECT_EQ(cursor.position(), 16u);
  EXPECT_EQ(cursor.raw_position(), 16u) << "position() skips blanks";
  EXPECT_EQ(cursor.word(), "main");
  EXPECT_TRUE(cursor.at_end());
  TextCursor only_string("\"main\"");
  EXPECT_EQ(only_string.word(), "");
}

TEST(TextCursor, Strings) {
  EXPECT_EQ(TextCursor("\"a\\\"b\\\\c\\0Ad\"").quoted(), "a\"b\\c\nd");
  TextCursor type("tensor<2x 3> loc");
  EXPECT_EQ(type.value(/*ends_at_attributes=*/true), "tensor<2x 3> loc");
  TextCursor located("tensor<2x 3> loc(#x)");
  EXPECT_EQ(located.value(/*ends_at_attributes=*/true), "tensor<2x 3>");
  TextCursor short_type("i32{");
  EXPECT_EQ(short_type.value(/*ends_at_attributes=*/true), "i32");
  TextCursor blank(" \n a");
  EXPECT_EQ(blank.position(), 3u);
}

}  // namespace
}  // namespace meshard::stablehlo

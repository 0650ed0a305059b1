#include "tools/meshard/terminal.h"

#include <gtest/gtest.h>

namespace meshard::tool {
namespace {

TEST(Wrapped, BreaksLongLinesAtSpaces) {
  EXPECT_EQ(wrapped("one two three four five six\nseven", 20),
            "one two three four\n  five six\nseven");
  EXPECT_EQ(wrapped("one two three four five six", 0), "one two three four five six");
  EXPECT_EQ(wrapped("", 20), "");
  EXPECT_EQ(wrapped("a\n\nb\n", 20), "a\n\nb\n");
}

TEST(Wrapped, AContinuedLineIsIndentedLikeTheLastColumn) {
  EXPECT_EQ(wrapped("  --a    makes a very long line", 22),
            "  --a    makes a very\n         long line");
}

TEST(Wrapped, KeepsPicturesAndLongWords) {
  EXPECT_EQ(wrapped("│ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │ 6 │", 20), "│ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │ 6 │");
  EXPECT_EQ(wrapped("abcdefghijklmnopqrstuvwxyz", 20), "abcdefghijklmnopqrstuvwxyz");
}

TEST(Wrapped, CountsCharactersNotBytes) {
  EXPECT_EQ(wrapped("ä ö ü ä ö ü ä ö ü ä", 20), "ä ö ü ä ö ü ä ö ü ä");
}

}  // namespace
}  // namespace meshard::tool

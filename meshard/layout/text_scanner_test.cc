#include "meshard/layout/text_scanner.h"

#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(TextScanner, ReadsTokensAndSkipsBlanks) {
  TextScanner s("test", "  name_1 = -12, \"a b\"  ");
  EXPECT_EQ(s.identifier(), "name_1");
  s.expect("=");
  EXPECT_TRUE(s.peek_integer());
  EXPECT_EQ(s.integer(), -12);
  EXPECT_FALSE(s.accept(";"));
  EXPECT_TRUE(s.accept(","));
  EXPECT_EQ(s.rest(), "\"a b\"  ");
  EXPECT_EQ(s.quoted(), "a b");
  EXPECT_TRUE(s.at_end());
}

TEST(TextScanner, MessagesShowTheTextAndThePlace) {
  TextScanner s("mesh", "ab?");
  s.identifier();
  EXPECT_TRUE(throws_error([&] { s.expect("="); }, ErrorCode::kInvalidArgument,
                           {"[parse mesh]", "expected `=`", "character 2", "`ab?`"}));
}

TEST(TextScanner, WholeTextMustBeRead) {
  auto number = [](TextScanner& s) { return s.integer(); };
  EXPECT_EQ(parse_whole("number", " 7 ", number).value(), 7);
  EXPECT_FALSE(parse_whole("number", "7 8", number).ok());
  EXPECT_FALSE(parse_whole("number", "", number).ok());
}

}  // namespace
}  // namespace meshard

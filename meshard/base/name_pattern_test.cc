#include <gtest/gtest.h>

#include <string>

#include "meshard/base/near_names.h"

namespace meshard {
namespace {

TEST(NamePattern, Stars) {
  EXPECT_TRUE(matches_name("w", "w"));
  EXPECT_TRUE(matches_name("*['w']", "p['w']"));
  EXPECT_TRUE(matches_name("a*b*c", "aXbYbc"));
  EXPECT_TRUE(matches_name("*", ""));
  EXPECT_TRUE(matches_name("**a**", "a"));
  EXPECT_FALSE(matches_name("w", "w1"));
  EXPECT_FALSE(matches_name("w*", "v"));
  EXPECT_FALSE(matches_name("a*b*c", "acb"));
  EXPECT_FALSE(matches_name("", "a"));
}

// Would take forever if every star were tried at every position.
TEST(NamePattern, ManyStars) {
  std::string pattern;
  for (int i = 0; i < 40; ++i) pattern += "a*";
  EXPECT_FALSE(matches_name(pattern + "b", std::string(200, 'a')));
}

}  // namespace
}  // namespace meshard

#include "meshard/base/near_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace meshard {
namespace {

TEST(NearNames, EditDistance) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("model", "mode"), 1u);
  EXPECT_EQ(edit_distance("model", "modle"), 1u);  // a swap
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("sitting", "kitten"), 3u);
}

TEST(NearNames, TheNearestFirst) {
  std::vector<std::string> names = {"x", "p['w1']", "p['w2']", "m['w2']", "tokens"};
  EXPECT_THAT(near_names("p['w3']", names, 2), testing::ElementsAre("p['w1']", "p['w2']"));
  EXPECT_THAT(near_names("w2", names, 2), testing::ElementsAre("p['w2']", "m['w2']"));
  EXPECT_THAT(near_names("token", names, 1), testing::ElementsAre("tokens"));
  EXPECT_TRUE(near_names("x", {}).empty());
}

TEST(NearNames, AsText) {
  std::vector<std::string> names = {"hidden", "heads"};
  EXPECT_EQ(nearest_text("hiden", names), "the nearest names are \"hidden\", \"heads\"");
  names.pop_back();
  EXPECT_EQ(nearest_text("hiden", names), "the nearest name is \"hidden\"");
  EXPECT_EQ(nearest_text("hiden", {}), "there are no names");
}

}  // namespace
}  // namespace meshard

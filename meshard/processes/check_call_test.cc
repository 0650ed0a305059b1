#include "meshard/processes/check_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace meshard {
namespace {

using testing::HasSubstr;

TEST(CheckCall, Groups) {
  EXPECT_EQ(check_group(std::vector{3, 1, 0}, 1, 4).value(), 1);
  EXPECT_EQ(check_group(std::vector{2}, 2, 4).value(), 0);
  EXPECT_THAT(check_group(std::vector{0, 1}, 2, 4).error().message(),
              HasSubstr("process 2 is not a member of the group [0,1]"));
  EXPECT_THAT(check_group(std::vector{0, 4}, 0, 4).error().message(),
              HasSubstr("from 0 to 3; it has 4"));
  EXPECT_FALSE(check_group(std::vector{0, -1}, 0, 4).ok());
  EXPECT_FALSE(check_group(std::vector{0, 1, 1}, 0, 4).ok());
  EXPECT_FALSE(check_group({}, 0, 4).ok());
}

TEST(CheckCall, Permutes) {
  EXPECT_TRUE(check_permute(1, -1, 0, 2).ok());
  EXPECT_TRUE(check_permute(0, 0, 0, 2).ok());
  EXPECT_THAT(check_permute(0, 1, 0, 2).error().message(),
              HasSubstr("sends to 0 and receives from 1"));
  EXPECT_FALSE(check_permute(2, -1, 0, 2).ok());
  EXPECT_FALSE(check_permute(-1, -2, 0, 2).ok());
}

TEST(CheckCall, Messages) {
  EXPECT_TRUE(check_message(1, 0, 0, 2).ok());
  EXPECT_THAT(check_message(2, 0, 0, 2).error().message(), HasSubstr("with process 2"));
  EXPECT_FALSE(check_message(0, 0, 0, 2).ok());
  EXPECT_THAT(check_message(1, -1, 0, 2).error().message(), HasSubstr("the tag -1"));
}

TEST(CheckCall, Sizes) {
  EXPECT_EQ(check_size(3, 5, 4).value(), 60u);
  EXPECT_FALSE(check_size(2, std::size_t{1} << 62, 1).ok());
  EXPECT_FALSE(check_size(1 << 20, std::size_t{1} << 40, 16).ok());
}

}  // namespace
}  // namespace meshard

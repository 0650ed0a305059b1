#include "meshard/processes/communicator.h"

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

TEST(CheckCall, Calls) {
  const std::vector<int> group = {3, 1, 0};
  const GroupCall sum{.op = Reduction::kSum, .type = DType::f32, .count = 5};
  EXPECT_EQ(check_call(group, sum, 1, 4).value(), 1u);
  EXPECT_FALSE(check_call(group, sum, 2, 4).ok());
  EXPECT_FALSE(check_call(group, {.op = Reduction::kXor, .type = DType::f32}, 1, 4).ok());
  for (std::size_t count : {std::size_t{1} << 62, std::size_t{1} << 60}) {
    EXPECT_FALSE(check_call(group, {.type = DType::c128, .count = count}, 1, 4).ok());
    EXPECT_FALSE(check_call({group.data(), 2}, {.type = DType::c128, .count = count}, 1, 4).ok());
  }
  GroupCall broadcast{.kind = GroupCall::Kind::kBroadcast, .count = 8, .root = 0};
  EXPECT_EQ(check_call(group, broadcast, 1, 4).value(), 1u);
  broadcast.root = 2;
  EXPECT_FALSE(check_call(group, broadcast, 1, 4).ok());
}

TEST(GroupCall, SaysWhatItMoves) {
  const GroupCall sum{.type = DType::f32, .count = 12};
  EXPECT_EQ(sum.to_string(), "all-reduce sum of 12 f32");
  EXPECT_EQ(sum.result_bytes(3), 48u);
  const GroupCall gather{.kind = GroupCall::Kind::kAllGather, .count = 12};
  EXPECT_EQ(gather.to_string(), "all-gather of 12 bytes");
  EXPECT_EQ(gather.result_bytes(3), 36u);
}

}  // namespace
}  // namespace meshard

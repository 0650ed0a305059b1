#include "meshard/processes/internal/device_meeting.h"

#include <gmock/gmock.h>

#include <thread>

namespace meshard::internal {
namespace {

using testing::ElementsAre;

TEST(DeviceMeeting, PlacesOfDevices) {
  const std::vector<int> counts = {2, 1, 3};
  const int expected[][2] = {{0, 0}, {0, 1}, {1, 0}, {2, 0}, {2, 1}, {2, 2}};
  for (int device = 0; device < 6; ++device) {
    EXPECT_EQ(place_of(device, counts).process, expected[device][0]);
    EXPECT_EQ(place_of(device, counts).number, expected[device][1]);
  }
}

TEST(DeviceMeeting, GroupsByProcess) {
  const std::vector<int> counts = {2, 1, 3};
  DeviceGroup group = DeviceGroup::of(std::vector{4, 0, 5, 1}, counts, 0);
  EXPECT_THAT(group.processes, ElementsAre(2, 0));
  EXPECT_THAT(group.positions, ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
  EXPECT_THAT(group.first_devices, ElementsAre(1, 0));
  EXPECT_EQ(group.here, 1u);
  EXPECT_EQ(group.num_here(), 2u);
  EXPECT_FALSE(group.is_whole);  // without device 3 of process 2
  EXPECT_TRUE(DeviceGroup::of(std::vector{2, 1, 0}, counts, 1).is_whole);
}

TEST(DeviceMeeting, TheLastOneWorksAndAllLearnItsError) {
  const std::vector<int> counts = {3};
  DeviceMeeting meeting(DeviceGroup::of(std::vector{0, 1, 2}, counts, 0));
  std::atomic<int> worked = 0, failed = 0;
  auto body = [&](std::size_t member) {
    for (int call = 0; call < 50; ++call) {
      auto round = meeting.join(member, {.count = 7}, &meeting);
      EXPECT_TRUE(round->meet(meeting.group(), [&] { return ++worked, Result<void>(); }).ok());
      EXPECT_EQ(round->operands()[0], &meeting);
      Result<void> done = round->meet(meeting.group(), [&]() -> Result<void> {
        if (call % 2 == 0) return {};
        return Error(ErrorCode::kUnavailable, "away");
      });
      if (!done.ok()) ++failed;
      // Once it has failed, it has.
      EXPECT_EQ(round->meet(meeting.group()).ok(), done.ok());
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t member = 0; member < 3; ++member) threads.emplace_back(body, member);
  }
  EXPECT_EQ(worked, 50);
  EXPECT_EQ(failed, 3 * 25);
}

TEST(DeviceMeeting, NoMemoryIsAnError) {
  const std::vector<int> counts = {1};
  DeviceMeeting meeting(DeviceGroup::of(std::vector{0}, counts, 0));
  auto round = meeting.join(0, {}, nullptr);
  Result<void> done =
      round->meet(meeting.group(), []() -> Result<void> { throw std::bad_alloc(); });
  EXPECT_EQ(done.error().code(), ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace meshard::internal

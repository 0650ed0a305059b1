#include "meshard/processes/internal/meeting_point.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/thread_communicator.h"

namespace meshard::internal {
namespace {

TEST(MeetingPoint, AllKnowTheAddressAndTheSecret) {
  auto communicators = make_thread_communicators(3);
  std::vector<MeetingPoint> points(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 3; ++rank)
      threads.emplace_back(
          [&, rank] { points[rank] = agree_on_meeting_point(*communicators[rank]).value(); });
  }
  ASSERT_TRUE(points[0].listener);
  for (const MeetingPoint& point : points) {
    EXPECT_EQ(point.secret, points[0].secret);
    EXPECT_EQ(point.secret.size(), 32u);
    // All are on one machine, so nothing else is open.
    ASSERT_EQ(point.addresses.size(), 1u);
    EXPECT_EQ(point.addresses[0].host, "127.0.0.1");
    EXPECT_TRUE(connect_to(point.addresses[0], std::chrono::milliseconds(1000)).ok());
  }
  EXPECT_FALSE(points[1].listener);
}

}  // namespace
}  // namespace meshard::internal

#include "meshard/processes/internal/gloo_meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace meshard::internal {
namespace {

const std::vector<std::string> kNames = {"process 0", "process 1", "process 2"};

TEST(GlooMeeting, OneMachineUsesTheLoopbackInterface) {
  for (const char* host : {"127.0.0.1", "::1", "::ffff:127.0.0.1", ""}) {
    GlooOffer each{.own_host = host, .other_host = host};
    GlooPlan plan = plan_of({each, each, each}, kNames);
    EXPECT_EQ(plan.problem, "");
    EXPECT_EQ(listening_host(plan, each), "127.0.0.1");
  }
}

// Process 1 is on the machine of process 0, and process 2 on another one.
TEST(GlooMeeting, OtherMachinesReachTheFirst) {
  GlooOffer first{.own_host = "", .other_host = "127.0.0.1"};
  GlooOffer second{.own_host = "127.0.0.1", .other_host = "127.0.0.1"};
  GlooOffer third{.own_host = "10.0.0.2", .other_host = "10.0.0.1"};
  GlooPlan plan = plan_of({first, second, third}, kNames);
  EXPECT_EQ(listening_host(plan, first), "10.0.0.1");
  EXPECT_EQ(listening_host(plan, second), "10.0.0.1");
  EXPECT_EQ(listening_host(plan, third), "10.0.0.2");
}

TEST(GlooMeeting, OneProcessWithoutGlooIsEnough) {
  GlooOffer able{.own_host = "127.0.0.1", .other_host = "127.0.0.1"};
  GlooOffer unable{.problem = "cannot find libmeshard_gloo.so"};
  EXPECT_EQ(plan_of({able, able, unable}, kNames).problem,
            "process 2: cannot find libmeshard_gloo.so");
}

}  // namespace
}  // namespace meshard::internal

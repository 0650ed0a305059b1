#include "meshard/base/awaiting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "meshard/base/threads.h"

namespace meshard::internal {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

TEST(Awaiting, ThreadsThatTakeStepsRunTheProgram) {
  reach_step("steps", 1);
  EXPECT_THAT(all_awaiting().program, IsEmpty());
  AwaitingScope outer({.what = "outer"});
  {
    AwaitingScope inner({.what = "inner"});
    ASSERT_THAT(all_awaiting().program, SizeIs(1));
    EXPECT_EQ(all_awaiting().program[0].what, "inner");
  }
  EXPECT_EQ(all_awaiting().program[0].what, "outer");
  std::thread([] {
    reach_step("steps", 3);
    EXPECT_THAT(all_awaiting().program, IsEmpty()) << "this thread does not wait";
    AwaitingScope here({.what = "here"});
    EXPECT_THAT(all_awaiting().program, SizeIs(2));
  }).join();
  EXPECT_THAT(all_awaiting().program, SizeIs(1)) << "the other thread has ended";
  std::thread([] {
    AwaitingScope here({.what = "here"});
    EXPECT_THAT(all_awaiting().others, SizeIs(1)) << "it takes no steps";
  }).join();
  EXPECT_THAT(all_awaiting().reached, Contains(Pair("steps", 3u)));
}

TEST(Awaiting, ThreadsOfTheLibraryDoNotRunTheProgram) {
  note_program_thread();
  AwaitingScope own({.what = "own"});
  start_quiet_thread([] { reach_step("saves", 1); }).join();
  EXPECT_THAT(all_awaiting().program, SizeIs(1));
  EXPECT_THAT(all_awaiting().reached, Contains(Pair("saves", 1u)));
}

}  // namespace
}  // namespace meshard::internal

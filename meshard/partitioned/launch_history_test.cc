#include "meshard/partitioned/launch_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

using ::testing::HasSubstr;

class Histories : public ::testing::Test {
 protected:
  static void launch(LaunchHistory& history, const char* name, std::vector<int> ranks = {0, 1},
                     int times = 1) {
    auto step = std::make_shared<const LaunchHistory::Step>(
        LaunchHistory::Step{fingerprint(name), cat('"', name, '"')});
    LaunchHistory::Track& track = *history.track(ranks);
    for (int i = 0; i < times; ++i) history.add(track, step, {"dir/train.cc", "", 7});
  }
  std::optional<std::string> difference() const {
    return difference_of_histories(first_.to_bytes(), 0, second_.to_bytes(), 1);
  }
  LaunchHistory first_, second_;
};

TEST_F(Histories, OneMayBeBehind) {
  EXPECT_EQ(difference(), std::nullopt);
  launch(first_, "a");
  EXPECT_EQ(difference(), std::nullopt);
  launch(first_, "b");
  launch(second_, "a");
  EXPECT_EQ(difference(), std::nullopt);
  EXPECT_EQ(first_.count(), 2u);
}

TEST_F(Histories, TheFirstDifferentLaunchIsNamed) {
  launch(first_, "a");
  launch(first_, "b");
  launch(second_, "a");
  launch(second_, "a");
  EXPECT_EQ(difference().value(),
            "launch 2 that both take part in is \"b\" at train.cc:7 in process 0, and \"a\" at "
            "train.cc:7 in process 1");
}

// What a process does with others does not matter to this one.
TEST_F(Histories, SetsOfProcessesAreCountedApart) {
  launch(first_, "a");
  launch(first_, "of 0 and 2", {0, 2}, 3);
  launch(first_, "b");
  launch(second_, "a");
  launch(second_, "b");
  EXPECT_EQ(difference(), std::nullopt);
  EXPECT_EQ(first_.sets(), (std::vector<std::vector<int>>{{0, 1}, {0, 2}}));
}

TEST_F(Histories, OldDifferencesAreFoundByTheirHash) {
  launch(first_, "a");
  launch(second_, "b");
  launch(first_, "c", {0, 1}, 500);
  launch(second_, "c", {0, 1}, 500);
  EXPECT_EQ(difference(), std::nullopt);  // no longer known one by one
  launch(first_, "c", {0, 1}, 600);
  EXPECT_EQ(difference(), std::nullopt);
  launch(second_, "c", {0, 1}, 700);
  EXPECT_THAT(difference().value(), HasSubstr("the first 1024 launches"));
}

TEST_F(Histories, WithManyLaunchesOnlyTheNewestAreCompared) {
  launch(first_, "a", {0, 1}, 5000);
  launch(second_, "a", {0, 1}, 4000);
  EXPECT_EQ(difference(), std::nullopt);
  launch(second_, "a", {0, 1}, 999);
  launch(second_, "b");
  EXPECT_THAT(difference().value(), HasSubstr("launch 5000"));
}

TEST_F(Histories, DamagedBytesDoNoHarm) {
  launch(first_, "a", {0, 1}, 3);
  std::string bytes = first_.to_bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size)
    (void)difference_of_histories(bytes.substr(0, size), 0, bytes, 1);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] = static_cast<char>(other[i] ^ 0x41);
    (void)difference_of_histories(other, 0, bytes, 1);
  }
}

TEST_F(Histories, TheActivityIsTheCollectiveAndTheLaunch) {
  std::chrono::steady_clock::time_point since{};
  EXPECT_EQ(first_.activity(since), "");
  launch(first_, "a", {0, 1}, 2);
  EXPECT_EQ(first_.activity(since), "launch 2 is \"a\" at train.cc:7");
  auto launched = since;
  first_.begin_collective("all-reduce", "all-reduce n3 (model.cc:12)");
  EXPECT_EQ(first_.activity(since), "all-reduce n3 (model.cc:12); launch 2 is \"a\" at train.cc:7");
  EXPECT_GE(since, launched);
  first_.begin_collective("all-reduce", "");
  EXPECT_THAT(first_.activity(since), ::testing::StartsWith("all-reduce; launch 2"));
  EXPECT_TRUE(first_.in_collective_since());
  ASSERT_EQ(first_.steps("x/").size(), 1u);
  EXPECT_EQ(first_.steps("x/")[0].number, 2u);
  first_.end_collective();  // another one still runs
  EXPECT_TRUE(first_.in_collective_since());
  first_.end_collective();
  EXPECT_EQ(first_.activity(since), "launch 2 is \"a\" at train.cc:7");
}

}  // namespace
}  // namespace meshard

#include "meshard/pipeline/schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/matchers.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(std::string_view text) {
  Result<PipelineSchedule> read = PipelineSchedule::parse(text);
  return read.ok() ? "no error" : std::string(read.error().message());
}

TEST(PipelineSchedule, ReadsOneLineForEachWorker) {
  PipelineSchedule read = PipelineSchedule::parse(
                              "# two stages\n"
                              "0F0, 0F1, 0B0, 0B1\n"
                              "\n"
                              "1F0 1B0 1F1 1B1  # one after the other\n",
                              "mine")
                              .value();
  EXPECT_EQ(read.name(), "mine");
  EXPECT_EQ(read.stages(), 2);
  EXPECT_EQ(read.workers(), 2);
  EXPECT_EQ(read.microbatches(), 2);
  EXPECT_EQ(read.to_string(), "0F0 0F1 0B0 0B1 0U\n1F0 1B0 1F1 1B1 1U\n");
  EXPECT_EQ(PipelineSchedule::parse(read.to_string()).value(), read);
  EXPECT_THAT(read.peak_activations(), ElementsAre(2, 1));
  EXPECT_FALSE(read.splits_gradients());
}

TEST(PipelineSchedule, TimesGiveTheOrder) {
  using Work = PipelineWork;
  std::vector<TimedAction> actions = {
      {3, {Work::kBackward, 0, 0}}, {0, {Work::kForward, 0, 0}}, {1, {Work::kForward, 1, 0}},
      {2, {Work::kBackward, 1, 0}}, {4, {Work::kUpdate, 0, 0}},  {4, {Work::kUpdate, 1, 0}},
  };
  EXPECT_EQ(PipelineSchedule::of(actions).value().to_string(), "0F0 0B0 0U\n1F0 1B0 1U\n");
  EXPECT_EQ(PipelineSchedule::of(actions, {0, 0}).value().to_string(), "0F0 1F0 1B0 0B0 0U 1U\n");
  Result<PipelineSchedule> unknown = PipelineSchedule::of(actions, {0});
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message(), HasSubstr("the worker of stage 1 is not known"));
}

TEST(PipelineSchedule, WhatIsIncomplete) {
  EXPECT_THAT(error_of(""), HasSubstr("the schedule is empty"));
  EXPECT_THAT(error_of("0F0 0B0 0F1"), HasSubstr("0B1 is missing"));
  EXPECT_THAT(error_of("0F0 0I0"), HasSubstr("0W0 is missing"));
  EXPECT_THAT(error_of("1F0 1B0"), HasSubstr("0F0, 0B0 are missing"));
  EXPECT_THAT(error_of("0F9"), HasSubstr("0F0, 0B0, 0F1, 0B1 and 15 more are missing"));
  EXPECT_THAT(error_of("0F0 0B0 0U\n1F0 1B0"),
              HasSubstr("updates of some stages are listed, but not those of others: 1U"));
}

TEST(PipelineSchedule, WhatIsThereTwiceOrOfNoUse) {
  EXPECT_THAT(error_of("0F0 0B0 0F0"), HasSubstr("0F0 is listed twice"));
  EXPECT_THAT(error_of("0F0\n0B0"), HasSubstr("0B0 is on worker 1, but worker 0"));
  EXPECT_THAT(error_of("0F0 0B0 0W0"), HasSubstr("0W0 is redundant"));
  EXPECT_THAT(error_of("0F0 0SEND_F0 0B0"), HasSubstr("0SEND_F0 is redundant"));
  EXPECT_THAT(error_of("0F0 0SEND_F0 0B0 1F0 1B0"), HasSubstr("0SEND_F0 is redundant"));
  EXPECT_EQ(error_of("0F0 0SEND_F0 0B0\n1F0 1B0 1SEND_B0"), "no error");
  EXPECT_THAT(error_of("0F0 0B0\n0F1 what"), HasSubstr("\"what\" is not an action"));
}

TEST(PipelineSchedule, ADeadlockNamesWhatEachWorkerWaitsFor) {
  EXPECT_THAT(error_of("0B0 0F0"),
              HasSubstr("the schedule never ends: worker 0 waits at 0B0 for 0F0"));
  // Worker 0 wants the gradient of microbatch 0 before it begins microbatch 1; worker 1 wants
  // microbatch 1 first.
  EXPECT_THAT(error_of("0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1"),
              HasSubstr("worker 0 waits at 0B0 for 1B0; worker 1 waits at 1F1 for 0F1"));
  EXPECT_THAT(error_of("0U 0F0 0B0"), HasSubstr("worker 0 waits at 0U for 0B0"));
  EXPECT_THAT(error_of("0F0 0B0 0SEND_F0\n1F0 1B0"),
              HasSubstr("worker 0 waits at 0B0 for 1B0; worker 1 waits at 1F0 for 0SEND_F0"));
}

// A schedule is an order that a run could have happened in: any order in which a random run starts
// the actions is accepted, and after an exchange of two dependent neighbors it is not.
TEST(PipelineSchedule, AcceptsWhatARunCanDo) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    int stages = static_cast<int>(random.between(1, 4)),
        count = static_cast<int>(random.between(1, 4));
    // Each microbatch goes forward through all stages, and then back.
    std::vector<int> steps(static_cast<std::size_t>(count), 0);
    std::vector<std::vector<PipelineAction>> orders(static_cast<std::size_t>(stages));
    for (int left = 2 * stages * count; left > 0; --left) {
      int m = 0;
      do {
        m = static_cast<int>(random.between(0, count - 1));
      } while (steps[static_cast<std::size_t>(m)] == 2 * stages);
      int step = steps[static_cast<std::size_t>(m)]++;
      int stage = step < stages ? step : 2 * stages - 1 - step;
      orders[static_cast<std::size_t>(stage)].push_back(
          {step < stages ? PipelineWork::kForward : PipelineWork::kBackward, stage, m});
    }
    Result<PipelineSchedule> made = PipelineSchedule::of(orders);
    ASSERT_TRUE(made.ok()) << made.error().message();
    EXPECT_EQ(PipelineSchedule::parse(made->to_string()).value(), *made);
    auto& last = orders.back();
    for (std::size_t i = 0; i + 1 < last.size(); ++i)
      if (last[i].microbatch == last[i + 1].microbatch) {
        std::swap(last[i], last[i + 1]);
        EXPECT_FALSE(PipelineSchedule::of(orders).ok());
        break;
      }
  }
}

}  // namespace
}  // namespace meshard

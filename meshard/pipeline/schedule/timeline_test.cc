#include "meshard/pipeline/schedule/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "meshard/pipeline/schedule/schedule.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(PipelineTimeline, EachActionBeginsWhenItsInputIsThere) {
  // One microbatch over two stages, by hand: F 1, send 0.5, F 2, B 5 (2 + 3), send 0.25, B 2.
  std::vector<StageTimes> times = {
      {.forward = 1, .input_gradient = 1, .weight_gradient = 1, .send_forward = 0.5},
      {.forward = 2, .input_gradient = 2, .weight_gradient = 3, .update = 4, .send_backward = 0.25},
  };
  PipelineTimeline timeline = timeline_of(gpipe(2, 1), times);
  using Entry = PipelineTimeline::Entry;
  EXPECT_THAT(timeline.workers[0],
              testing::ElementsAre(Entry{{PipelineWork::kForward, 0, 0}, 0, 1},
                                   Entry{{PipelineWork::kBackward, 0, 0}, 8.75, 10.75},
                                   Entry{{PipelineWork::kUpdate, 0, 0}, 10.75, 10.75}));
  EXPECT_THAT(timeline.workers[1],
              testing::ElementsAre(Entry{{PipelineWork::kForward, 1, 0}, 1.5, 3.5},
                                   Entry{{PipelineWork::kBackward, 1, 0}, 3.5, 8.5},
                                   Entry{{PipelineWork::kUpdate, 1, 0}, 8.5, 12.5}));
  EXPECT_EQ(timeline.length, 12.5);
  EXPECT_EQ(timeline.busy(0), 3);
  EXPECT_EQ(timeline.busy(1), 11);
  EXPECT_EQ(timeline.slowest(), 1);
  EXPECT_DOUBLE_EQ(timeline.bubble(), 1 - 14 / 25.0);
}

TEST(PipelineTimeline, AListedSendLeavesAtItsPlaceAndKeepsNoWorkerBusy) {
  PipelineSchedule late =
      PipelineSchedule::parse("0F0 0F1 0SEND_F0 0SEND_F1 0B0 0B1\n1F0 1F1 1B0 1B1").value();
  PipelineTimeline timeline = timeline_of(late, StageTimes{.send_forward = 10});
  EXPECT_EQ(timeline.workers[0][2].start, 2);
  EXPECT_EQ(timeline.workers[0][3].start, 2);
  EXPECT_EQ(timeline.workers[1][0].start, 12);
  EXPECT_EQ(timeline.busy(0), 6);
}

TEST(PipelineTimeline, StagesOfOneWorkerSendNothing) {
  PipelineSchedule both = PipelineSchedule::parse("0F0 1F0 1B0 0B0").value();
  StageTimes times{.send_forward = 100, .send_backward = 100};
  EXPECT_EQ(timeline_of(both, times).length, 6);
  EXPECT_EQ(timeline_of(both, times).bubble(), 0);
}

TEST(PipelineTimeline, TimesThatAreNone) {
  EXPECT_TRUE(throws_error([] { timeline_of(gpipe(3, 1), std::vector<StageTimes>(2)); },
                           ErrorCode::kInvalidArgument,
                           {"the times of 2 stages for a schedule of 3"}));
  EXPECT_TRUE(throws_error([] { timeline_of(gpipe(1, 1), StageTimes{.forward = -1}); },
                           ErrorCode::kInvalidArgument, {"forward takes -1"}));
  double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(throws_error([&] { timeline_of(gpipe(1, 1), StageTimes{.update = nan}); },
                           ErrorCode::kInvalidArgument, {"update takes"}));
  EXPECT_EQ(timeline_of(gpipe(2, 2), StageTimes{0, 0, 0}).bubble(), 0);
}

}  // namespace
}  // namespace meshard

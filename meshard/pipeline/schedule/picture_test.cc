#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/base/json_reader.h"
#include "meshard/pipeline/schedule/schedule.h"
#include "meshard/pipeline/schedule/timeline.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::HasSubstr;

// Drawn by hand: 3 microbatches take (3 + 1) * 3 = 12 units over two stages.
TEST(PipelinePicture, AColumnForEachUnitOfTime) {
  EXPECT_EQ(picture(timeline_of(one_forward_one_backward(2, 3))),
            "worker 0 │F0│F1│· │· │B0───│F2│B1───│· │B2───│\n"
            "worker 1 │· │F0│B0───│F1│B1───│F2│B2───│· │· │\n");
}

TEST(PipelinePicture, StagesAreNamedWhereWorkersHaveSeveral) {
  PipelineSchedule both = PipelineSchedule::parse("0F0 1F0 1B0 0B0").value();
  EXPECT_EQ(picture(timeline_of(both)), "worker 0 │0F0│1F0│1B0────│0B0────│\n");
}

TEST(PipelinePicture, LongTimelinesAreDrawnCoarsely) {
  std::string text = picture(timeline_of(gpipe(4, 64)), 20);
  EXPECT_THAT(text, HasSubstr("worker 3 │"));
  EXPECT_LT(text.find('\n'), 400u);
  EXPECT_TRUE(throws_error([] { picture(timeline_of(gpipe(1, 1)), 0); },
                           ErrorCode::kInvalidArgument, {"at least one column"}));
}

TEST(PipelinePicture, SvgHasABoxForEachAction) {
  std::string svg = picture_svg(timeline_of(zero_bubble(2, 3)));
  std::size_t boxes = 0;
  for (std::size_t at = 0; (at = svg.find("<rect", at)) != std::string::npos; ++at) ++boxes;
  EXPECT_EQ(boxes, 2u * 3 * 3 + 3);  // and three in the list of colors
  EXPECT_THAT(svg, HasSubstr("weight gradient"));
}

TEST(PipelinePicture, TraceHasTheTimes) {
  std::string json = trace_json(timeline_of(gpipe(2, 1)), 1e-3);
  EXPECT_THAT(
      json,
      HasSubstr(R"("name":"1B0","cat":"backward","ph":"X","pid":0,"tid":1,"ts":2000,"dur":2000)"));
  EXPECT_THAT(json, HasSubstr(R"("args":{"name":"worker 1"})"));
}

}  // namespace
}  // namespace meshard

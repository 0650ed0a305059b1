#include "meshard/optim/schedule.h"

#include <gmock/gmock.h>

#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::optim {
namespace {

using Schedules = OnPlugin;
using testing::ElementsAre;
using testing::FloatNear;

std::vector<float> rates(const Schedule& schedule, std::vector<int> steps) {
  std::vector<float> out;
  for (int step : steps) out.push_back(schedule(from_host(HostArray::scalar(step))).item<float>());
  return out;
}

TEST_F(Schedules, OfOneNumberAreConstant) {
  EXPECT_THAT(rates(0.5, {0, 100}), ElementsAre(0.5f, 0.5f));
}

TEST_F(Schedules, GoInLinesAndWaves) {
  EXPECT_THAT(rates(linear(1, 0.5, 4), {0, 1, 2, 4, 9}), ElementsAre(1, 0.875f, 0.75f, 0.5f, 0.5f));
  // (1 + cos(60 degrees)) / 2 = 3/4, and at 120 degrees 1/4.
  EXPECT_THAT(rates(cosine(1, 9), {0, 3, 6, 9, 20}),
              ElementsAre(1, FloatNear(0.75f, 1e-6f), FloatNear(0.25f, 1e-6f), FloatNear(0, 1e-6f),
                          FloatNear(0, 1e-6f)));
  EXPECT_THAT(rates(cosine(1, 2, 0.5), {1, 2}),
              ElementsAre(FloatNear(0.75f, 1e-6f), FloatNear(0.5f, 1e-6f)));
}

TEST_F(Schedules, FollowOneAnother) {
  EXPECT_THAT(rates(warm_up(2, 4, linear(2, 0, 4)), {0, 1, 3, 4, 6, 8}),
              ElementsAre(0.5f, 1, 2, 2, 1, 0));
  EXPECT_THAT(rates(joined(1.0, 3, linear(4, 8, 4)), {2, 3, 4}), ElementsAre(1, 4, 5));
  EXPECT_THAT(rates(piecewise({{0, 1.0}, {10, 0.5}, {20, 0.25}}), {0, 9, 10, 19, 20, 99}),
              ElementsAre(1, 1, 0.5f, 0.5f, 0.25f, 0.25f));
}

TEST_F(Schedules, RefuseWhatIsNoSchedule) {
  EXPECT_TRUE(throws_error([] { cosine(1, 0); }, ErrorCode::kInvalidArgument, {"not 0"}));
  EXPECT_TRUE(
      throws_error([] { piecewise({}); }, ErrorCode::kInvalidArgument, {"list of rates is empty"}));
  EXPECT_TRUE(throws_error(
      [] {
        piecewise({{1, 0.5}});
      },
      ErrorCode::kInvalidArgument, {"step 0 is 1, not 0"}));
  EXPECT_TRUE(throws_error(
      [] {
        piecewise({{0, 0.5}, {0, 0.25}});
      },
      ErrorCode::kInvalidArgument, {"is not after step 0"}));
  EXPECT_TRUE(
      throws_error([] { cosine(1, 5)(ones({2})); }, ErrorCode::kInvalidArgument, {"f32[2]"}));
}

}  // namespace
}  // namespace meshard::optim

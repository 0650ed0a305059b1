#include "meshard/optim/decay_schedule.h"

#include <gmock/gmock.h>

#include <cmath>

#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::optim {
namespace {

using DecaySchedules = OnPlugin;
using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

std::vector<float> rates_of(const Schedule& schedule, std::initializer_list<int> steps) {
  std::vector<float> out;
  for (int step : steps) out.push_back(schedule(full({}, step)).item<float>());
  return out;
}

// Beside optax for random options: python/tests/compare_optax.py.
TEST_F(DecaySchedules, GoThroughTheNumbersOfTheFormula) {
  EXPECT_THAT(rates_of(exponential(1, 2, 0.25), {0, 1, 2, 4}),
              ElementsAre(1, 0.5f, 0.25f, 0.0625f));
  EXPECT_THAT(rates_of(exponential(1, 2, 0.25, {.staircase = true, .last = 0.125}), {1, 2, 3, 4}),
              ElementsAre(1, 0.25f, 0.25f, 0.125f));
  EXPECT_THAT(rates_of(inverse_square_root(3, 4), {0, 12, 32}), ElementsAre(3, 1.5f, 1));
  EXPECT_THAT(rates_of(polynomial(2, 1, 2, 4), {0, 2, 4, 9}), ElementsAre(2, 1.25f, 1, 1));
  EXPECT_THAT(rates_of(interpolated({{0, 0}, {4, 2}, {8, 1}}), {0, 1, 4, 6, 8, 99}),
              ElementsAre(0, 0.5f, 2, 1.5f, 1, 1));
}

TEST_F(DecaySchedules, BeginAgain) {
  // Periods of 2, 6 and 18 steps, with peaks of 1, 1/2 and 1/4.
  Schedule restarts = cosine_restarts(1, 2, {.longer = 3, .lower = 0.5});
  EXPECT_THAT(
      rates_of(restarts, {0, 1, 2, 5, 8, 17, 26}),
      Pointwise(FloatNear(1e-6f), std::vector<float>{1, 0.5f, 0.5f, 0.25f, 0.25f, 0.125f, 0.125f}));
  EXPECT_THAT(rates_of(cosine_restarts(1, 4, {.last = 0.5}), {0, 2, 4, 6}),
              Pointwise(FloatNear(1e-6f), std::vector<float>{1, 0.75f, 1, 0.75f}));
  // At every restart, the rate is that of a new period: rounding must not put it into the old one.
  for (std::int64_t steps : {41, 47, 55}) {
    Schedule equal_periods = cosine_restarts(1, steps);
    Schedule stairs = exponential(1, steps, 0.5, {.staircase = true});
    for (int k = 1; k < 6; ++k) {
      EXPECT_FLOAT_EQ(rates_of(equal_periods, {static_cast<int>(k * steps)})[0], 1);
      EXPECT_FLOAT_EQ(rates_of(stairs, {static_cast<int>(k * steps)})[0], std::ldexp(1.0f, -k));
    }
  }
  for (std::int64_t first : {7, 41}) {
    std::int64_t begin = 0, length = first;
    for (int k = 0; k < 12; ++k, begin += length, length *= 3)
      EXPECT_FLOAT_EQ(
          rates_of(cosine_restarts(1, first, {.longer = 3}), {static_cast<int>(begin)})[0], 1)
          << begin;
  }
}

TEST_F(DecaySchedules, RefuseWhatIsNoSchedule) {
  EXPECT_TRUE(throws_error([] { polynomial(1, 0, 2, 0); }, ErrorCode::kInvalidArgument, {"not 0"}));
  EXPECT_TRUE(
      throws_error([] { exponential(1, 5, 0); }, ErrorCode::kInvalidArgument, {"above 0, not 0"}));
  EXPECT_TRUE(throws_error([] { cosine_restarts(1, 5, {.longer = 0}); },
                           ErrorCode::kInvalidArgument, {"at least 1, not 0"}));
  EXPECT_TRUE(throws_error([] { interpolated({}); }, ErrorCode::kInvalidArgument, {"is empty"}));
  EXPECT_TRUE(throws_error(
      [] {
        interpolated({{0, 1.0}, {0, 2.0}});
      },
      ErrorCode::kInvalidArgument, {"is not after step 0"}));
  EXPECT_TRUE(throws_error([] { one_cycle(1, 2); }, ErrorCode::kInvalidArgument, {"2 steps"}));
}

}  // namespace
}  // namespace meshard::optim

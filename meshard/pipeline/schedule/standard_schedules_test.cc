#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "meshard/pipeline/schedule/schedule.h"
#include "meshard/pipeline/schedule/timeline.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Le;

// The orders that the papers' figures show for four stages.
TEST(StandardSchedules, OrdersOfThePapers) {
  EXPECT_EQ(gpipe(2, 3).to_string(),
            "0F0 0F1 0F2 0B0 0B1 0B2 0U\n"
            "1F0 1F1 1F2 1B0 1B1 1B2 1U\n");
  EXPECT_EQ(one_forward_one_backward(4, 4).to_string(),
            "0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3 0U\n"
            "1F0 1F1 1F2 1B0 1F3 1B1 1B2 1B3 1U\n"
            "2F0 2F1 2B0 2F2 2B1 2F3 2B2 2B3 2U\n"
            "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3U\n");
  // Megatron-LM's figure 4: two chunks, the first device begins with four forward passes of the
  // first chunk and then four of the second.
  EXPECT_THAT(interleaved(2, 2, 4).to_string(),
              testing::StartsWith("0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 "));
  EXPECT_EQ(interleaved(2, 2, 4).worker_of(3), 1);
}

TEST(StandardSchedules, BubblesAreThoseOfTheFormulas) {
  for (int p = 1; p <= 8; ++p)
    for (int m : {1, 2, 4, 5, 7, 8, 16, 64}) {
      double one_direction = (p - 1.0) / (m + p - 1.0);
      EXPECT_NEAR(timeline_of(gpipe(p, m)).bubble(), one_direction, 1e-12) << p << " " << m;
      EXPECT_NEAR(timeline_of(one_forward_one_backward(p, m)).bubble(), one_direction, 1e-12)
          << p << " " << m;
      if (m >= p) {
        EXPECT_NEAR(timeline_of(zero_bubble(p, m)).bubble(), (p - 1.0) / (3.0 * m + p - 1), 1e-12)
            << p << " " << m;
      }
      for (int v : {1, 2, 3, 4})
        if (m % p == 0) {
          EXPECT_NEAR(timeline_of(interleaved(p, v, m)).bubble(), (p - 1.0) / (1.0 * v * m + p - 1),
                      1e-12)
              << p << " " << v << " " << m;
        }
    }
}

TEST(StandardSchedules, ActivationsThatAreKept) {
  for (int p = 1; p <= 8; ++p)
    for (int m : {1, 3, 8, 20}) {
      EXPECT_THAT(gpipe(p, m).peak_activations(), Each(m));
      std::vector<int> peaks = one_forward_one_backward(p, m).peak_activations();
      for (int s = 0; s < p; ++s)
        EXPECT_EQ(peaks[static_cast<std::size_t>(s)], std::min(m, p - s)) << p << " " << m;
      EXPECT_THAT(zero_bubble(p, m).peak_activations(), Each(Le(p)));
    }
  EXPECT_TRUE(zero_bubble(2, 4).splits_gradients());
}

TEST(StandardSchedules, OneChunkIsOneForwardOneBackwardWithMoreWarmup) {
  for (int m : {4, 8}) {
    PipelineSchedule one = interleaved(4, 1, m);
    EXPECT_EQ(one.stages(), 4);
    EXPECT_EQ(one.order(3), one_forward_one_backward(4, m).order(3));
  }
}

TEST(StandardSchedules, NumbersThatMakeNoPipeline) {
  EXPECT_TRUE(throws_error([] { gpipe(0, 4); }, ErrorCode::kInvalidArgument, {"0 stages"}));
  EXPECT_TRUE(throws_error([] { one_forward_one_backward(4, 0); }, ErrorCode::kInvalidArgument,
                           {"0 microbatches"}));
  EXPECT_TRUE(
      throws_error([] { interleaved(2, 0, 4); }, ErrorCode::kInvalidArgument, {"0 chunks"}));
  EXPECT_TRUE(throws_error([] { interleaved(2, 2, 5); }, ErrorCode::kInvalidArgument,
                           {"5 microbatches for 2 workers"}));
}

}  // namespace
}  // namespace meshard

// The digits example: the same losses on one, four and eight devices, and it learns digits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <vector>

#include "examples/digits/data.h"
#include "examples/digits/options.h"
#include "examples/digits/plot.h"
#include "examples/digits/train.h"
#include "meshard/meshard.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/e2e/digits_testutil.h"
#include "tests/support/matchers.h"

namespace digits {
namespace {

using meshard::Mesh;
using testing::HasSubstr;

using DigitsTraining = meshard::OnPlugin;

TEST_F(DigitsTraining, LossesDoNotDependOnTheMesh) {
  Digits digits = generated(1000);
  std::vector<double> one = Trainer(Mesh({{"data", 1}, {"model", 1}}), 1).run(digits, 100);
  std::vector<double> four =
      Trainer(Mesh({{"data", 2}, {"model", 2}}, {4, 5, 6, 7}), 1).run(digits, 100);
  std::vector<double> eight = Trainer(Mesh({{"data", 2}, {"model", 4}}), 1).run(digits, 100);
  ASSERT_EQ(one.size(), 100u);
  for (std::size_t i = 0; i < one.size(); ++i) {
    double allowed = 1e-5 * std::max(1.0, std::abs(one[i]));
    EXPECT_NEAR(four[i], one[i], allowed) << "step " << i + 1 << " on 4 devices";
    EXPECT_NEAR(eight[i], one[i], allowed) << "step " << i + 1 << " on 8 devices";
  }
  EXPECT_GT(one.front(), 1.5);  // ten classes before learning: about ln 10
  EXPECT_LT(one.back(), 0.5 * one.front());
}

TEST_F(DigitsTraining, LearnsDigitsItHasNotSeen) {
  if (!std::ifstream(default_data_path())) GTEST_SKIP() << "no file " << default_data_path();
  Split digits = split(read_digits(default_data_path()).value(), 360);
  ASSERT_EQ(digits.train.size(), 1437);
  Trainer trainer(Mesh({{"data", 2}, {"model", 4}}), 1);
  trainer.run(digits.train, 300);
  EXPECT_GT(trainer.accuracy(digits.held_back), 0.95);
}

TEST_F(DigitsTraining, StateIsSplitAsItsWeights) {
  Trainer trainer(Mesh({{"data", 2}, {"model", 4}}), 1);
  trainer.run(generated(256), 2);
  const Training& state = trainer.state();
  for (const Classifier* each : {&state.model, &state.adam.mean, &state.adam.square}) {
    EXPECT_EQ(each->columns.w.sharding()->shard_shape(std::array<std::int64_t, 2>{64, 256}),
              (meshard::IntVector{64, 64}));
    EXPECT_EQ(each->rows.w.sharding()->shard_shape(std::array<std::int64_t, 2>{256, 128}),
              (meshard::IntVector{64, 128}));
  }
  // Weights and both means, 4 bytes each: columns 64x64 + 64, rows 64x128 + 128, head 128x10 + 10;
  // plus the step counter.
  EXPECT_EQ(bytes_on_device(state), 4 * (3 * (4160 + 8320 + 1290) + 1));
}

TEST(DigitsData, BatchesCoverAPassOnce) {
  Digits digits;
  for (std::int32_t i = 0; i < 12; ++i) {
    digits.labels.push_back(i);
    digits.pixels.insert(digits.pixels.end(), kPixels, float(i));
  }
  Batches batches(digits, 4, 3);
  std::vector<std::int32_t> seen;
  for (int i = 0; i < 3; ++i) {
    Digits batch = batches.next();
    for (std::size_t j = 0; j < 4; ++j) {
      seen.push_back(batch.labels[j]);
      EXPECT_EQ(batch.pixels[j * kPixels + 63], float(batch.labels[j]));
    }
  }
  EXPECT_THAT(seen, testing::UnorderedElementsAreArray(digits.labels));
  EXPECT_THAT(seen, testing::Not(testing::ElementsAreArray(digits.labels)));
}

TEST(DigitsData, RefusesWhatIsNoDigit) {
  EXPECT_THAT(read_digits("/no/such/file").error().message(), HasSubstr("no file /no/such/file"));
  std::string path = testing::TempDir() + "/digits.csv";
  std::ofstream(path) << "0,1,2\n";
  EXPECT_THAT(read_digits(path).error().message(), HasSubstr("digits.csv:1: not 64 pixels"));
}

TEST(DigitsOptions, ReadsAndRefuses) {
  const char* good[] = {"digits", "--mesh", "2x2", "--devices", "4,5,6,7", "--steps", "100"};
  Options options = parse_options(7, good).value();
  EXPECT_EQ(options.mesh(), Mesh({{"data", 2}, {"model", 2}}, {4, 5, 6, 7}));
  EXPECT_EQ(options.steps, 100);
  EXPECT_EQ(options.device_count(), 8);
  const char* few[] = {"digits", "--mesh", "2x4", "--devices", "1,2"};
  EXPECT_THAT(parse_options(5, few).error().message(),
              HasSubstr("--mesh 2x4 needs 8 devices, but --devices lists 2"));
  const char* words[] = {"digits", "--steps", "many"};
  EXPECT_THAT(parse_options(3, words).error().message(), HasSubstr("--steps many"));
}

TEST(DigitsPlot, MarksAreRound) {
  EXPECT_DOUBLE_EQ(mark_distance(1), 0.2);
  EXPECT_DOUBLE_EQ(mark_distance(600), 100);
  EXPECT_DOUBLE_EQ(mark_distance(2.3), 0.5);
  std::vector<double> values{2, 1, 0};
  std::string svg = line_plot(values, "a title", "x", "y");
  EXPECT_THAT(svg, HasSubstr("a title"));
  // 3 steps over 630 pixels: the first value ends at 70 + 210; the last is on the axis, at
  // 400 - 55.
  EXPECT_THAT(svg, HasSubstr("points=\"280,"));
  EXPECT_THAT(svg, HasSubstr("700,345\""));
}

}  // namespace
}  // namespace digits

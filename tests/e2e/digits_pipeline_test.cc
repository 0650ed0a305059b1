// The digits example as a pipeline of stages: losses and parameters are those of the run with one
// stage on one device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "examples/digits/data.h"
#include "examples/digits/options.h"
#include "examples/digits/pipeline.h"
#include "examples/digits/train.h"
#include "meshard/meshard.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/e2e/digits_testutil.h"
#include "tests/support/outcome.h"

namespace digits {
namespace {

using meshard::cat;
using meshard::Outcome;
using testing::HasSubstr;

constexpr std::int64_t kSteps = 20;

Outcome trained(const Options& options) {
  static const Digits digits = generated(1000);
  Trainer trainer(options);
  Outcome outcome;
  outcome.losses = trainer.run(digits, kSteps);
  outcome.add_parameters(meshard::structure::tensors(trainer.model()));
  return outcome;
}

Options on(std::int64_t data, std::int64_t model) {
  Options options;
  options.data_devices = data;
  options.model_devices = model;
  return options;
}

struct DigitsPipeline : meshard::OnPlugin {
  // Of one stage on one device.
  static const Outcome& expected() {
    static const Outcome outcome = trained(on(1, 1));
    return outcome;
  }
  static void expect_equal(const Options& options) {
    SCOPED_TRACE(cat(options.schedule, ", ", options.stages, " stages of ", options.data_devices,
                     " x ", options.model_devices, " devices"));
    expect_near(trained(options), expected(), 1e-6);
  }
};

TEST_F(DigitsPipeline, LearnsAsOneStageDoes) {
  EXPECT_LT(expected().losses.back(), 0.7 * expected().losses.front());
  for (std::int64_t stages : {2, 3, 4})
    for (const char* schedule : {"gpipe", "1f1b", "zb-h1"}) {
      Options options = on(stages == 2 ? 2 : 1, 2);
      options.stages = stages;
      options.schedule = schedule;
      expect_equal(options);
    }
}

TEST_F(DigitsPipeline, LearnsInterleaved) {
  using Sizes = std::pair<std::int64_t, std::int64_t>;
  for (auto [stages, chunks] : {Sizes{2, 2}, Sizes{3, 3}, Sizes{4, 2}}) {
    Options options = on(2, 2);
    options.stages = stages;
    options.chunks = chunks;
    options.schedule = "interleaved";
    options.devices = {7, 6, 5, 4, 0, 1, 2, 3};
    expect_equal(options);
  }
}

TEST(DigitsPipelineOptions, AreReadAndRefused) {
  const char* good[] = {"digits",      "--pipeline",     "4",   "--schedule",
                        "interleaved", "--mesh",         "2x1", "--devices",
                        "4,5,6,7",     "--microbatches", "16"};
  Options options = parse_options(11, good).value();
  EXPECT_EQ(options.workers(), 2);
  EXPECT_EQ(options.mesh(1), meshard::Mesh({{"data", 2}, {"model", 1}}, {6, 7}));
  EXPECT_EQ(schedule_of(options).workers(), 2);
  EXPECT_EQ(schedule_of(options).microbatches(), 16);
  const auto message = [](std::vector<const char*> given) {
    given.insert(given.begin(), "digits");
    meshard::Result<Options> read = parse_options(static_cast<int>(given.size()), given.data());
    return read.ok() ? "no error" : std::string(read.error().message());
  };
  EXPECT_THAT(message({"--pipeline", "5"}), HasSubstr("the model has 4 stages, not 5"));
  EXPECT_THAT(message({"--pipeline", "2", "--microbatches", "3"}),
              HasSubstr("a batch of 128 cannot be divided into 3 microbatches"));
  EXPECT_THAT(message({"--pipeline", "3", "--schedule", "interleaved"}),
              HasSubstr("3 stages cannot be divided into 2 chunks"));
  EXPECT_THAT(message({"--pipeline", "2", "--mesh", "2x2", "--devices", "1,2,3,4"}),
              HasSubstr("2 workers with --mesh 2x2 need 8 devices, but --devices lists 4"));
}

}  // namespace
}  // namespace digits

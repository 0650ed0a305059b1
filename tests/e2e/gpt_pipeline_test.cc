// The GPT example as a pipeline of stages: losses and parameters are those of the run with one
// stage on one device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "examples/gpt/options.h"
#include "examples/gpt/pipeline.h"
#include "examples/gpt/train.h"
#include "meshard/meshard.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/e2e/gpt_testutil.h"
#include "tests/support/outcome.h"

namespace gpt {
namespace {

using namespace meshard;
using testing::HasSubstr;

Options small_options() {
  Options options;
  options.sizes = {.layers = 4, .width = 16, .heads = 2, .hidden = 24};
  options.steps = 20;
  options.batch = 8;
  options.context = 8;
  options.microbatches = 4;
  return options;
}

Outcome trained(const Options& options) {
  Trainer trainer(options, counting_text());
  Outcome outcome;
  outcome.losses = trainer.run();
  outcome.add_parameters(structure::tensors(trainer.model()));
  return outcome;
}

struct GptPipeline : OnPlugin {
  // Of one stage on one device.
  static const Outcome& expected() {
    static const Outcome outcome = trained(small_options());
    return outcome;
  }
  static void expect_equal(const Options& options) {
    SCOPED_TRACE(cat(options.schedule, ", ", options.stages, " stages of ", options.data_devices,
                     " x ", options.model_devices, " devices"));
    ASSERT_LE(options.device_count(), 8);
    expect_near(trained(options), expected(), 1e-6);
  }
};

TEST_F(GptPipeline, LearnsAsOneStageDoes) {
  EXPECT_LT(expected().losses.back(), expected().losses.front() - 0.1);
  for (std::int64_t stages : {2, 3, 4})
    for (const char* schedule : {"gpipe", "1f1b", "zb-h1"}) {
      Options options = small_options();
      options.stages = stages;
      options.schedule = schedule;
      options.data_devices = 2;
      options.model_devices = stages == 2 ? 2 : 1;
      expect_equal(options);
    }
}

TEST_F(GptPipeline, LearnsInterleaved) {
  using Sizes = std::pair<std::int64_t, std::int64_t>;
  for (auto [stages, chunks] : {Sizes{2, 2}, Sizes{3, 3}, Sizes{4, 2}}) {
    Options options = small_options();
    options.stages = stages;
    options.chunks = chunks;
    options.schedule = "interleaved";
    options.model_devices = options.data_devices = 2;
    options.sequence = true;
    expect_equal(options);
  }
}

TEST_F(GptPipeline, IsJoinedFromItsParts) {
  Options options = small_options();
  std::vector<Tensor> whole = structure::tensors(Trainer(options, counting_text()).model());
  options.stages = 3;
  std::vector<Tensor> joined = structure::tensors(Trainer(options, counting_text()).model());
  ASSERT_EQ(joined.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i)
    EXPECT_EQ(joined[i].to_vector<float>(), whole[i].to_vector<float>());
}

TEST_F(GptPipeline, SavesTheModelForTheServer) {
  Options options = small_options();
  options.stages = options.steps = 2;
  options.checkpoint = testing::TempDir() + "gpt_pipeline_test.safetensors";
  Trainer trainer(options, counting_text());
  trainer.run();
  Trained like{
      nn::describe({}, [&](nn::Maker& make) { return make_decoder(make, options.sizes); })};
  Trained found = io::restore(options.checkpoint, like).value();
  EXPECT_EQ(found.context, options.context);
  std::vector<Tensor> saved = structure::tensors(found.model),
                      trained = structure::tensors(decoder_of(trainer.model()));
  ASSERT_EQ(saved.size(), trained.size());
  for (std::size_t i = 0; i < saved.size(); ++i)
    EXPECT_EQ(saved[i].to_vector<float>(), trained[i].to_vector<float>());
}

TEST(GptPipelineOptions, AreReadAndRefused) {
  const char* arguments[] = {
      "gpt",           "--pipeline", "4", "--layers",       "4", "--schedule",
      "interleaved",   "--chunks",   "2", "--microbatches", "4", "--mesh",
      "data=2,model=2"};
  Options options = parse_options(13, arguments).value();
  EXPECT_EQ(options.workers(), 2);
  EXPECT_EQ(options.device_count(), 8);
  EXPECT_EQ(options.mesh(1), Mesh({{"data", 2}, {"model", 2}}, {4, 5, 6, 7}));
  PipelineSchedule schedule = schedule_of(options);
  EXPECT_EQ(schedule.stages(), 4);
  EXPECT_EQ(schedule.workers(), 2);
  EXPECT_EQ(schedule.microbatches(), 4);
  const auto message = [](std::vector<const char*> given) {
    given.insert(given.begin(), "gpt");
    Result<Options> read = parse_options(static_cast<int>(given.size()), given.data());
    return read.ok() ? "no error" : std::string(read.error().message());
  };
  EXPECT_THAT(message({"--pipeline", "3"}), HasSubstr("2 layers cannot be divided into 3 stages"));
  EXPECT_THAT(message({"--pipeline", "2", "--microbatches", "3"}),
              HasSubstr("a batch of 16 cannot be divided into 3 microbatches"));
  EXPECT_THAT(message({"--pipeline", "2", "--schedule", "2f2b"}),
              HasSubstr("cannot use: --schedule 2f2b"));
  EXPECT_THAT(message({"--layers", "3", "--pipeline", "3", "--schedule", "interleaved"}),
              HasSubstr("3 stages cannot be divided into 2 chunks"));
  EXPECT_THAT(message({"--pipeline", "2", "--export", "a.mlir"}), HasSubstr("without --pipeline"));
  EXPECT_THAT(message({"--pipeline", "2", "--checkpoint", "a", "--resume"}),
              HasSubstr("without --pipeline"));
}

}  // namespace
}  // namespace gpt

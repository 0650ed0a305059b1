// The example that trains a GPT: the same losses however it is spread, text that it learns, bytes
// with a cache as without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "examples/gpt/options.h"
#include "examples/gpt/sample.h"
#include "examples/gpt/text.h"
#include "examples/gpt/train.h"
#include "meshard/meshard.h"
#include "tests/support/matchers.h"

namespace gpt {
namespace {

using namespace meshard;

class GptTraining : public testing::Test {
 protected:
  void SetUp() override {
    try {
      runtime_client();
    } catch (const Error& error) {
      GTEST_SKIP() << "no plugin: " << error.what();
    }
  }
};

Text counting_text() {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += cat("line ", i % 50, " of the book\n");
  return {text, text.substr(0, 4000), "lines"};
}

Options small_options() {
  Options options;
  options.sizes = {.layers = 2, .width = 32, .heads = 4, .hidden = 64};
  options.steps = 12;
  options.batch = 4;
  options.context = 32;
  return options;
}

std::vector<double> losses_on(std::int64_t data, std::int64_t model, bool sequence) {
  Options options = small_options();
  options.data_devices = data;
  options.model_devices = model;
  options.sequence = sequence;
  return Trainer(options, counting_text()).run();
}

TEST_F(GptTraining, LossesDoNotDependOnTheMesh) {
  std::vector<double> one = losses_on(1, 1, false);
  EXPECT_NEAR(one.front(), std::log(256), 0.1) << "nothing is learned yet";
  EXPECT_LT(one.back(), one.front() - 0.1) << "and something is by now";
  EXPECT_THAT(losses_on(2, 4, false), testing::Pointwise(testing::DoubleNear(1e-4), one));
  EXPECT_THAT(losses_on(2, 2, true), testing::Pointwise(testing::DoubleNear(1e-4), one));
}

TEST_F(GptTraining, LearnsWhatRepeats) {
  Options options = small_options();
  options.steps = 80;
  options.rate = 1e-2;
  Trainer trainer(options, counting_text());
  double before = trainer.held_back_loss();
  trainer.run();
  double after = trainer.held_back_loss();
  EXPECT_NEAR(before, std::log(256), 0.1);
  EXPECT_LT(after, 1.0);
  Sampling likeliest{.count = 12, .temperature = 0};
  std::string told;
  EXPECT_EQ(sample(trainer.state().model, trainer.rules(), "line 7 o", likeliest,
                   [&](char c) { told += c; }),
            "f the book\nl");
  EXPECT_EQ(told, "f the book\nl");
}

TEST_F(GptTraining, TheCacheGivesWhatTheWholeGives) {
  Options options = small_options();
  Trainer trainer(options, counting_text());
  const Gpt& model = trainer.state().model;
  std::vector<std::int32_t> bytes{10, 200, 30, 77};
  auto caches = [&] {
    Caches made;
    for (const Block& block : model.blocks)
      made.push_back(nn::make_cache({}, block.attention, 1, 8));
    return made;
  };
  Tensor start = full({1}, 0);
  Tensor whole_logits = next_byte(model, from_host(bytes, {1, 4}), caches(), start).first;
  Caches kept = caches();
  Tensor logits;
  for (std::int32_t i = 0; i < 4; ++i)
    std::tie(logits, kept) =
        next_byte(model, full({1, 1}, bytes[static_cast<std::size_t>(i)]), kept, full({1}, i));
  EXPECT_THAT(logits.to_vector<float>(),
              testing::Pointwise(testing::FloatNear(1e-4f), whole_logits.to_vector<float>()));
}

TEST_F(GptTraining, GoesOnFromACheckpointOnAnotherMesh) {
  Options options = small_options();
  options.checkpoint = testing::TempDir() + "gpt_test.safetensors";
  Trainer first(options, counting_text());
  first.run();
  options.data_devices = options.model_devices = 2;
  options.steps = 14;
  Trainer second(options, counting_text());
  ASSERT_TRUE(second.resume().ok());
  EXPECT_EQ(second.steps(), 12);
  EXPECT_NEAR(second.held_back_loss(), first.held_back_loss(), 1e-4);
  EXPECT_EQ(second.state().model.blocks[0].attention.query.sharding()->spec(),
            P(none, "model", none));
  EXPECT_EQ(second.run().size(), 2u);
}

TEST(GptText, WindowsAreDrawnAloneFromSeedAndStep) {
  std::string text = counting_text().train;
  std::vector<std::int32_t> first = windows_of_step(text, 2, 8, 1, 5);
  EXPECT_EQ(first.size(), 18u);
  EXPECT_EQ(first, windows_of_step(text, 2, 8, 1, 5));
  EXPECT_NE(first, windows_of_step(text, 2, 8, 1, 6));
  EXPECT_NE(first, windows_of_step(text, 2, 8, 2, 5));
  EXPECT_THAT(windows_in_order("abcdefgh", 2, 3, 0),
              testing::ElementsAre('a', 'b', 'c', 'd', 'd', 'e', 'f', 'g'));
}

TEST(GptText, NothingHeldBackIsLearned) {
  Result<Text> text = licence_text();
  if (!text.ok()) GTEST_SKIP() << text.error().message();
  EXPECT_GT(text->train.size(), 100000u);
  EXPECT_NE(text->held_back.find("Covered Software"), std::string::npos) << "of the MPL";
  EXPECT_EQ(
      text->train.find("Contributor hereby grants You a world-wide, royalty-free, non-exclusive"),
      std::string::npos);
  EXPECT_NE(text->train.find("General Public License"), std::string::npos);
}

TEST(GptOptions, AreReadAndRefused) {
  const char* arguments[] = {"gpt", "--mesh", "model=4,data=2", "--sequence", "--steps", "7"};
  Options options = parse_options(6, arguments).value();
  EXPECT_EQ(options.mesh(), Mesh({{"data", 2}, {"model", 4}}));
  EXPECT_TRUE(options.sequence);
  EXPECT_EQ(options.steps, 7);
  for (std::vector<const char*> wrong :
       std::vector<std::vector<const char*>>{{"gpt", "--mesh", "expert=2"},
                                             {"gpt", "--mesh", "data=3"},
                                             {"gpt", "--steps", "0"},
                                             {"gpt", "--steps"},
                                             {"gpt", "--resume"},
                                             {"gpt", "--heads", "3"}})
    EXPECT_FALSE(parse_options(static_cast<int>(wrong.size()), wrong.data()).ok()) << wrong.back();
}

}  // namespace
}  // namespace gpt

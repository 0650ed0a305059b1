// The GPT training example: the same losses on any mesh, it learns the text, and generation with a
// cache gives the same bytes as without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "examples/gpt/options.h"
#include "examples/gpt/sample.h"
#include "examples/gpt/text.h"
#include "examples/gpt/train.h"
#include "meshard/meshard.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/e2e/gpt_testutil.h"
#include "tests/support/matchers.h"

namespace gpt {
namespace {

using namespace meshard;

using GptTraining = OnPlugin;

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
  options.steps = 20;
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
  EXPECT_THAT(losses_on(2, 4, true), testing::Pointwise(testing::DoubleNear(1e-4), one));
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
  std::string text;
  EXPECT_EQ(sample(decoder_of(trainer.state().model), trainer.rules(), "line 7 o", likeliest,
                   [&](char c) { text += c; }),
            "f the book\nl");
  EXPECT_EQ(text, "f the book\nl");
}

TEST_F(GptTraining, TheCacheGivesWhatTheWholeGives) {
  Options options = small_options();
  Trainer trainer(options, counting_text());
  const Gpt& model = trainer.state().model;
  Decoder decoder = decoder_of(model);
  std::vector<std::int32_t> bytes{10, 200, 30, 77};
  Tensor at_once = logits_of(model, from_host(bytes, {1, 4}), {});  // without a cache
  Tensor expected = index(at_once, {0, -1});
  Caches kept = make_caches(decoder, {}, 1, 8);
  Tensor logits;
  for (std::int32_t i = 0; i < 4; ++i)
    std::tie(logits, kept) =
        next_byte(decoder, full({1, 1}, bytes[static_cast<std::size_t>(i)]), kept, full({1}, i),
                  full({1}, 0), Static{i < 2 ? std::int64_t{2} : std::int64_t{8}});
  auto is_near = testing::Pointwise(testing::FloatNear(1e-4f), expected.to_vector<float>());
  EXPECT_THAT(logits.to_vector<float>(), is_near);

  // One byte, then three that are padded to five: the padding is not attended to, now or later.
  kept = make_caches(decoder, {}, 1, 8);
  kept = next_byte(decoder, full({1, 1}, 10), kept, full({1}, 0), full({1}, 0),
                   Static{std::int64_t{8}})
             .second;
  Tensor filled = from_host(std::vector<std::int32_t>{200, 30, 77, 5, 6}, {1, 5});
  std::tie(logits, kept) =
      next_byte(decoder, filled, kept, full({1}, 1), full({1}, 2), Static{std::int64_t{4}});
  EXPECT_THAT(logits.to_vector<float>(), is_near);
}

TEST(GptWindow, BeginsAnewWithTheLastHalf) {
  Window window;
  window.fit(64, 64);
  EXPECT_EQ(window.first, 0);
  window.read = 64;
  window.fit(65, 64);
  EXPECT_EQ(window.first, 33);  // the last 32 bytes remain: 33 to 64
  EXPECT_EQ(window.read, 0);
  window.fit(97, 64);
  EXPECT_EQ(window.first, 33) << "64 bytes again";
  Window one;
  one.fit(3, 1);
  EXPECT_EQ(one.first, 2);
}

// Text longer than the training context continues as it would from its last bytes.
TEST_F(GptTraining, WritesOnBeyondTheContext) {
  Options options = small_options();
  options.steps = 80;
  options.rate = 1e-2;
  Trainer trainer(options, counting_text());
  trainer.run();
  const Gpt& model = trainer.state().model;
  Sampling likeliest{.count = 100, .context = options.context, .temperature = 0};
  std::string prompt = "line 7 o";
  std::string all = prompt + sample(decoder_of(model), {}, prompt, likeliest);
  auto logits_at = jit([](const Gpt& of, const Tensor& bytes) { return logits_of(of, bytes, {}); });
  Window window;
  for (std::size_t size = prompt.size(); size < all.size(); ++size) {
    window.fit(static_cast<std::int64_t>(size), options.context);
    auto first = static_cast<std::size_t>(window.first);
    std::vector<std::int32_t> seen(static_cast<std::size_t>(options.context), 0);
    for (std::size_t i = first; i < size; ++i) seen[i - first] = static_cast<unsigned char>(all[i]);
    std::vector<float> logits =
        logits_at(model, from_host(std::move(seen), {1, options.context})).to_vector<float>();
    auto row = logits.begin() + static_cast<std::ptrdiff_t>((size - first - 1) * kBytes);
    ASSERT_EQ(all[size], static_cast<char>(std::max_element(row, row + kBytes) - row))
        << "at " << size << " of " << all;
  }
}

// Interrupts a training run and resumes it on another mesh from its checkpoint.
TEST_F(GptTraining, ResumedOnAnotherMeshTheLossesAreThoseOfGoingThrough) {
  Options options = small_options();
  std::vector<double> through = Trainer(options, counting_text()).run();
  options.checkpoint = testing::TempDir() + "gpt_test_resumed.safetensors";
  options.save_every = 5;
  struct Interrupted {};
  auto interrupt = [](std::int64_t step, double) {
    if (step == 7) throw Interrupted();
  };
  Trainer first(options, counting_text());
  EXPECT_THROW(first.run(interrupt), Interrupted);
  options.data_devices = 2;
  options.model_devices = 4;
  Trainer second(options, counting_text());
  ASSERT_TRUE(second.resume().ok());
  EXPECT_EQ(second.steps(), 5);
  EXPECT_THAT(second.run(),
              testing::Pointwise(testing::DoubleNear(1e-4),
                                 std::vector<double>(through.begin() + 5, through.end())));
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
  Result<Text> text = license_text();
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

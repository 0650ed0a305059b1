#include "examples/llm/server/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "examples/llm/server/prompt_lookup.h"

namespace llm {
namespace {

using testing::ElementsAre;

const std::vector<float> kLogits = {2, 1, 0, -1, 0.5F, -2, 1.5F, 0.25F};

struct Setting {
  double repetition_penalty, temperature;
  std::int64_t top_k;
  double top_p, min_p;
  std::vector<double> expected;
};

// The probabilities of the logits processors of transformers 5.24, in their order, for the prompt
// {0, 3}.
const Setting kSettings[] = {
    {1,
     1,
     0,
     1,
     0,
     {0.388387, 0.142880, 0.052562, 0.019337, 0.086661, 0.007114, 0.235569, 0.067492}},
    {1,
     0.5,
     0,
     1,
     0,
     {0.623313, 0.084356, 0.011416, 0.001545, 0.031033, 0.000209, 0.229304, 0.018822}},
    {1, 1, 3, 1, 0, {0.506480, 0.186324, 0, 0, 0, 0, 0.307196, 0}},
    {1, 1, 0, 0.6, 0, {0.622459, 0, 0, 0, 0, 0, 0.377541, 0}},
    {1, 1, 0, 1, 0.3, {0.506480, 0.186324, 0, 0, 0, 0, 0.307196, 0}},
    {1.5,
     1,
     0,
     1,
     0,
     {0.248198, 0.177842, 0.065424, 0.014598, 0.107866, 0.008854, 0.293211, 0.084006}},
    {1.2, 0.7, 5, 0.9, 0.05, {0.423222, 0.163288, 0, 0, 0.079936, 0, 0.333553, 0}},
    {1, 2.0, 6, 0.7, 0.4, {0.349932, 0.212244, 0, 0, 0.165296, 0, 0.272527, 0}},
};

TEST(Sampler, DrawsWithTheProbabilitiesOfTransformers) {
  constexpr int kDraws = 20000;
  for (const auto& setting : kSettings) {
    std::vector<double> counts(kLogits.size());
    for (int seed = 0; seed < kDraws; ++seed) {
      SamplingOptions options;
      options.repetition_penalty = setting.repetition_penalty;
      options.temperature = setting.temperature;
      options.top_k = setting.top_k;
      options.top_p = setting.top_p;
      options.min_p = setting.min_p;
      options.seed = static_cast<std::uint64_t>(seed);
      const std::int32_t prompt[] = {0, 3};
      ++counts[static_cast<std::size_t>(Sampler(options, prompt).choose(kLogits))];
    }
    for (std::size_t token = 0; token < counts.size(); ++token) {
      const double p = setting.expected[token];
      // Four and a half standard deviations; a token of probability 0 is never drawn.
      EXPECT_NEAR(counts[token] / kDraws, p, 4.5 * std::sqrt(p * (1 - p) / kDraws))
          << "token " << token;
    }
  }
}

TEST(Sampler, PenalizesTokensOfTheAnswer) {
  SamplingOptions options;
  options.temperature = 0;
  options.frequency_penalty = 0.4;
  options.presence_penalty = 0.2;
  const std::int32_t prompt[] = {0, 0};  // the prompt does not count
  Sampler sampler(options, prompt);
  std::vector<std::int32_t> answer;
  for (int i = 0; i < 6; ++i) {
    answer.push_back(sampler.choose(kLogits));
    sampler.accept(answer.back());
  }
  // 2, then 1.4 < 1.5 of token 6, then 0.9 < 1.4 of token 0, then 1.0 of tokens 0 and 1: the first
  // one, then token 1, then 0.9 of token 6.
  EXPECT_THAT(answer, ElementsAre(0, 6, 0, 0, 1, 6));
  options = {};
  options.temperature = 0;
  options.bias = {{5, 5.0}};
  EXPECT_EQ(Sampler(options, prompt).choose(kLogits), 5);
}

TEST(Sampler, RefusesNan) {
  auto logits = kLogits;
  logits[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW((void)Sampler({}, {}).choose(logits), std::runtime_error);
}

TEST(TokenLogprob, IsTheLogarithmOfTheSoftmax) {
  // torch.log_softmax of the logits.
  const auto result = token_logprob(kLogits, 4, 3);
  EXPECT_NEAR(result.logprob, -2.4458, 1e-4);
  ASSERT_EQ(result.top.size(), 3);
  EXPECT_EQ(result.top[0].first, 0);
  EXPECT_EQ(result.top[1].first, 6);
  EXPECT_EQ(result.top[2].first, 1);
  EXPECT_NEAR(result.top[1].second, -1.4458, 1e-4);
}

TEST(PromptLookup, ContinuesTheLastOccurrenceOfTheLongestEnd) {
  const std::vector<std::int32_t> tokens = {1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3};
  EXPECT_THAT(prompt_lookup(tokens, 3), ElementsAre(4, 9, 2)) << "three tokens before two";
  const std::vector<std::int32_t> two = {7, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3};
  EXPECT_THAT(prompt_lookup(two, 2), ElementsAre(5, 1)) << "the last occurrence";
  EXPECT_THAT(prompt_lookup(std::vector<std::int32_t>{8, 8}, 4), ElementsAre(8));
  EXPECT_THAT(prompt_lookup(std::vector<std::int32_t>{1, 2, 3}, 4), ElementsAre());
  EXPECT_THAT(prompt_lookup(std::vector<std::int32_t>{}, 4), ElementsAre());
  EXPECT_THAT(prompt_lookup(tokens, 0), ElementsAre());
}

}  // namespace
}  // namespace llm

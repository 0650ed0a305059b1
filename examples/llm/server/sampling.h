#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace llm {

/// How a token is chosen from logits. The steps are taken in the order of the fields.
struct SamplingOptions {
  double repetition_penalty =
      1;  ///< divides positive logits of tokens that occurred (arXiv:1909.05858)
  double frequency_penalty = 0;         ///< subtracted for each time that the answer has the token
  double presence_penalty = 0;          ///< subtracted if the answer has the token
  std::map<std::int32_t, double> bias;  ///< added to the logits of these tokens
  double temperature = 1;               ///< divides the logits; 0 chooses the largest one
  std::int64_t top_k = 0;               ///< only the k most likely tokens; 0: all
  double top_p = 1;  ///< only the most likely tokens whose probabilities add up to p
  double min_p =
      0;  ///< only tokens that are at least this fraction as likely as the most likely one
  std::uint64_t seed = 0;

  [[nodiscard]] bool greedy() const { return temperature == 0; }
};

/// A token with the model's own log-probability, before penalties and temperature.
struct TokenLogprob {
  std::int32_t token = 0;
  double logprob = 0;
  std::vector<std::pair<std::int32_t, double>> top;  ///< the most likely tokens, in falling order
};

/// Chooses the tokens of one answer. The choice depends only on the logits, the tokens so far and
/// the seed, so that an answer that is computed again is the same.
class Sampler {
 public:
  Sampler(SamplingOptions options, std::span<const std::int32_t> prompt);

  /// The next token. @pre logits has one number for each token of the vocabulary
  [[nodiscard]] std::int32_t choose(std::span<const float> logits) const;
  /// Adds a token to the answer.
  void accept(std::int32_t token);
  [[nodiscard]] const SamplingOptions& options() const { return options_; }

 private:
  [[nodiscard]] std::vector<double> adjusted(std::span<const float> logits) const;

  SamplingOptions options_;
  std::unordered_map<std::int32_t, std::int64_t> answer_;  ///< how often the answer has a token
  std::unordered_map<std::int32_t, bool> seen_;            ///< tokens of the prompt and the answer
  std::uint64_t position_ = 0;
};

/// The log-probability of a token, and those of the `top` most likely ones.
[[nodiscard]] TokenLogprob token_logprob(std::span<const float> logits, std::int32_t token,
                                         std::int64_t top);

}  // namespace llm

#include "examples/llm/server/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

namespace llm {
namespace {

/// A number in [0, 1) that the seed and the position determine: SplitMix64 (Steele et al. 2014).
double uniform(std::uint64_t seed, std::uint64_t position) {
  std::uint64_t z = seed * 0xD1342543DE82EF95u + (position + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-53;
}

/// The first of the largest elements.
template <class Numbers>
std::int32_t largest(const Numbers& numbers) {
  return static_cast<std::int32_t>(std::max_element(numbers.begin(), numbers.end()) -
                                   numbers.begin());
}

}  // namespace

Sampler::Sampler(SamplingOptions options, std::span<const std::int32_t> prompt)
    : options_(std::move(options)) {
  for (const auto token : prompt) seen_[token] = true;
}

void Sampler::accept(std::int32_t token) {
  seen_[token] = true;
  ++answer_[token];
  ++position_;
}

std::vector<double> Sampler::adjusted(std::span<const float> logits) const {
  std::vector<double> result(logits.begin(), logits.end());
  for (std::size_t i = 0; i < result.size(); ++i)
    if (std::isnan(result[i]))
      throw std::runtime_error("[sampling] the model's logit of token " + std::to_string(i) +
                               " is NaN");
  const auto size = static_cast<std::int32_t>(result.size());
  const auto at = [&](std::int32_t token) -> double& {
    return result[static_cast<std::size_t>(token)];
  };
  if (options_.repetition_penalty != 1)
    for (const auto& [token, seen] : seen_) {
      if (token >= size) continue;
      double& logit = at(token);
      logit = logit > 0 ? logit / options_.repetition_penalty : logit * options_.repetition_penalty;
    }
  for (const auto& [token, count] : answer_)
    if (token < size)
      at(token) -=
          options_.frequency_penalty * static_cast<double>(count) + options_.presence_penalty;
  for (const auto& [token, bias] : options_.bias)
    if (token < size) at(token) += bias;
  return result;
}

std::int32_t Sampler::choose(std::span<const float> logits) const {
  const std::vector<double> scores = adjusted(logits);
  if (options_.greedy()) return largest(scores);
  std::vector<std::int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto score = [&](std::int32_t token) { return scores[static_cast<std::size_t>(token)]; };
  const auto before = [&](std::int32_t a, std::int32_t b) {
    return score(a) != score(b) ? score(a) > score(b) : a < b;
  };
  const bool cut = options_.top_k > 0 && options_.top_k < static_cast<std::int64_t>(order.size());
  if (cut) {
    std::partial_sort(order.begin(), order.begin() + options_.top_k, order.end(), before);
    order.resize(static_cast<std::size_t>(options_.top_k));
  } else if (options_.top_p < 1 || options_.min_p > 0) {
    std::sort(order.begin(), order.end(), before);
  }
  const double highest = scores[static_cast<std::size_t>(largest(scores))];
  std::vector<double> weights;
  weights.reserve(order.size());
  for (const auto token : order)
    weights.push_back(std::exp((score(token) - highest) / options_.temperature));
  double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (options_.top_p < 1) {  // as long as the tokens before one do not reach p
    double sum = 0;
    std::size_t kept = 0;
    while (kept < weights.size() && (kept == 0 || sum < options_.top_p * total))
      sum += weights[kept++];
    weights.resize(kept);
  }
  while (options_.min_p > 0 && weights.size() > 1 && weights.back() < options_.min_p * weights[0])
    weights.pop_back();
  total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double left = uniform(options_.seed, position_) * total;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order[weights.size() - 1];  // reached only by rounding
}

TokenLogprob token_logprob(std::span<const float> logits, std::int32_t token, std::int64_t top) {
  const double highest = logits[static_cast<std::size_t>(largest(logits))];
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - highest);
  const double log_sum = highest + std::log(sum);
  const auto logprob = [&](std::int32_t id) {
    return logits[static_cast<std::size_t>(id)] - log_sum;
  };
  TokenLogprob result{token, logprob(token), {}};
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto kept = std::min(top, static_cast<std::int64_t>(order.size()));
  std::partial_sort(order.begin(), order.begin() + kept, order.end(),
                    [&](std::int32_t a, std::int32_t b) {
                      const double left = logprob(a), right = logprob(b);
                      return left != right ? left > right : a < b;
                    });
  for (std::int64_t i = 0; i < kept; ++i)
    result.top.emplace_back(order[static_cast<std::size_t>(i)],
                            logprob(order[static_cast<std::size_t>(i)]));
  return result;
}

}  // namespace llm

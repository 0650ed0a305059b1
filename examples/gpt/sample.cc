#include "examples/gpt/sample.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "examples/gpt/text.h"

namespace gpt {

using namespace meshard;

std::int32_t drawn(std::span<const float> logits, double temperature, std::uint64_t& random) {
  auto likeliest = std::max_element(logits.begin(), logits.end());
  if (temperature <= 0) return static_cast<std::int32_t>(likeliest - logits.begin());
  std::vector<double> sums;
  double total = 0;
  for (float logit : logits) sums.push_back(total += std::exp((logit - *likeliest) / temperature));
  double at = std::ldexp(static_cast<double>(next_random(random) >> 11), -53) * total;
  auto chosen = std::upper_bound(sums.begin(), sums.end() - 1, at);
  return static_cast<std::int32_t>(chosen - sums.begin());
}

std::string sample(const Gpt& model, const nn::AxisRules& rules, const std::string& prompt,
                   const Sampling& sampling, const std::function<void(char)>& told) {
  if (prompt.empty()) throw Error(ErrorCode::kInvalidArgument, "[gpt] the prompt is empty");
  auto read = static_cast<std::int64_t>(prompt.size());
  Caches caches;
  for (const Block& block : model.blocks)
    caches.push_back(nn::make_cache(rules, block.attention, 1, read + sampling.count));
  auto step = jit(&next_byte, {.name = "next_byte", .donate = {2}});

  std::vector<std::int32_t> bytes;
  for (char c : prompt) bytes.push_back(static_cast<unsigned char>(c));
  std::string out;
  std::uint64_t random = sampling.seed;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < sampling.count; ++i) {
    auto count = static_cast<std::int64_t>(bytes.size());
    Tensor start = from_host(std::vector<std::int32_t>{static_cast<std::int32_t>(at)}, {1});
    auto [logits, next] = step(model, from_host(bytes, {1, count}), caches, start);
    caches = std::move(next);
    at += count;
    bytes = {drawn(logits.to_vector<float>(), sampling.temperature, random)};
    out += static_cast<char>(bytes[0]);
    if (told) told(out.back());
  }
  return out;
}

}  // namespace gpt

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

std::string sample(const Decoder& model, const nn::AxisRules& rules, const std::string& prompt,
                   const Sampling& sampling, const std::function<void(char)>& on_byte) {
  if (prompt.empty()) throw Error(ErrorCode::kInvalidArgument, "[gpt] the prompt is empty");
  Caches caches = make_caches(model, rules, 1, sampling.context);
  auto step = jit(&next_byte, {.name = "next_byte", .donate = {2}});
  auto number = [](std::int64_t value) {
    return from_host(std::vector<std::int32_t>{static_cast<std::int32_t>(value)}, {1});
  };

  std::string all = prompt;
  Window window;
  std::uint64_t random = sampling.seed;
  for (std::int64_t i = 0; i < sampling.count; ++i) {
    auto size = static_cast<std::int64_t>(all.size());
    window.fit(size, sampling.context);
    std::vector<std::int32_t> bytes;
    for (std::int64_t k = window.first + window.read; k < size; ++k)
      bytes.push_back(static_cast<unsigned char>(all[static_cast<std::size_t>(k)]));
    auto count = static_cast<std::int64_t>(bytes.size());
    auto [logits, next] =
        step(model, from_host(std::move(bytes), {1, count}), caches, number(window.read),
             number(count - 1), Static{positions_to_read(window.read + count, sampling.context)});
    caches = std::move(next);
    window.read += count;
    all +=
        static_cast<char>(drawn(gather(logits).to_vector<float>(), sampling.temperature, random));
    if (on_byte) on_byte(all.back());
  }
  return all.substr(prompt.size());
}

}  // namespace gpt

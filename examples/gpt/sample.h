// New text from a trained model.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "examples/gpt/model.h"
#include "meshard/meshard.h"

namespace gpt {

struct Sampling {
  std::int64_t count = 400;   ///< bytes to add
  std::int64_t context = 64;  ///< bytes that the model may see at a time
  double temperature = 0.5;   ///< 0: always the likeliest byte
  std::uint64_t seed = 1;
};

/// Which bytes of a growing sequence the model sees. It knows the positions that it was trained on
/// and no others, so when a byte more would be too many the window begins anew with the last half:
/// every byte but the first ones follows at least half a context of others, and reading anew costs
/// one position a byte.
struct Window {
  std::int64_t first = 0;  ///< the byte at position 0
  std::int64_t read = 0;   ///< how many the cache holds

  /// Makes the first `size` bytes of the sequence fit.
  void fit(std::int64_t size, std::int64_t context) {
    if (size - first <= context) return;
    first = size - std::max<std::int64_t>(context / 2, 1);
    read = 0;
  }
};

/// A byte drawn with probability proportional to exp(logit / temperature), or the likeliest one at
/// temperature 0. `random` is a state of next_random().
std::int32_t drawn(std::span<const float> logits, double temperature, std::uint64_t& random);

/// Adds bytes to the prompt, one after the other, each drawn from what the model says; keys and
/// values of the window stay in a cache. `told` gets each byte as it comes. Returns what was added.
/// @error invalid argument if the prompt is empty.
std::string sample(const Gpt& model, const meshard::nn::AxisRules& rules, const std::string& prompt,
                   const Sampling& sampling, const std::function<void(char)>& told = {});

}  // namespace gpt

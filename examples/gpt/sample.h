// New text from a trained model.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "examples/gpt/model.h"
#include "meshard/meshard.h"

namespace gpt {

struct Sampling {
  std::int64_t count = 400;  ///< bytes to add
  double temperature = 0.7;  ///< 0: always the likeliest byte
  std::uint64_t seed = 1;
};

/// A byte drawn with probability proportional to exp(logit / temperature), or the likeliest one at
/// temperature 0. `random` is a state of next_random().
std::int32_t drawn(std::span<const float> logits, double temperature, std::uint64_t& random);

/// Adds bytes to the prompt, one after the other, each drawn from what the model says; keys and
/// values of what was read stay in a cache, so that each byte costs one position. `told` gets each
/// byte as it comes. Returns what was added.
/// @error invalid argument if the prompt is empty.
std::string sample(const Gpt& model, const meshard::nn::AxisRules& rules, const std::string& prompt,
                   const Sampling& sampling, const std::function<void(char)>& told = {});

}  // namespace gpt

// New text from a trained model.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "examples/gpt/model.h"
#include "meshard/meshard.h"

namespace gpt {

struct Sampling {
  std::int64_t count = 400;  ///< bytes to add
  double temperature = 0.7;  ///< 0: always the likeliest byte
  std::uint64_t seed = 1;
};

/// Adds bytes to the prompt, one after the other, each drawn from what the model says; keys and
/// values of what was read stay in a cache, so that each byte costs one position. `told` gets each
/// byte as it comes. Returns what was added.
/// @error invalid argument if the prompt is empty.
std::string sample(const Gpt& model, const meshard::nn::AxisRules& rules, const std::string& prompt,
                   const Sampling& sampling, const std::function<void(char)>& told = {});

}  // namespace gpt

// Text generation with a trained model.
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
  std::int64_t count = 400;   ///< bytes to generate
  std::int64_t context = 64;  ///< maximum number of bytes that the model sees
  double temperature = 0.5;   ///< 0: always the most likely byte
  std::uint64_t seed = 1;
};

/// The window of a growing sequence that the model sees. The model has learned only the positions
/// of its training windows, so when the window is full it restarts with the last half: every byte
/// but the first ones is preceded by at least half a context, and rereading costs one position per
/// byte.
struct Window {
  std::int64_t first = 0;  ///< index of the byte at position 0
  std::int64_t read = 0;   ///< number of bytes in the cache

  /// Moves the window so that it contains byte `size` - 1 of the sequence.
  void fit(std::int64_t size, std::int64_t context) {
    if (size - first <= context) return;
    first = size - std::max<std::int64_t>(context / 2, 1);
    read = 0;
  }
};

/// Samples a byte with probability proportional to exp(logit / temperature). At temperature 0,
/// returns the most likely byte. `random` is the state of next_random().
std::int32_t drawn(std::span<const float> logits, double temperature, std::uint64_t& random);

/// Generates bytes after the prompt, one at a time, and returns them. The keys and values of the
/// window are cached. `on_byte` is called with each byte as it is generated.
/// @error invalid argument if the prompt is empty.
std::string sample(const Decoder& model, const meshard::nn::AxisRules& rules,
                   const std::string& prompt, const Sampling& sampling,
                   const std::function<void(char)>& on_byte = {});

}  // namespace gpt

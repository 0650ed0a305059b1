// Tested in tests/e2e/llm_test.cc.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "examples/llm/model/config.h"

namespace llm {
namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;

// A long wavelength is divided by the factor, a short one stays, and those between are
// interpolated.
double scaled_as_llama3(double frequency, const Rope& rope) {
  double wavelength = kTwoPi / frequency;
  auto context = static_cast<double>(rope.original_context);
  if (wavelength < context / rope.high_frequency_factor) return frequency;
  if (wavelength > context / rope.low_frequency_factor) return frequency / rope.factor;
  double smooth = (context / wavelength - rope.low_frequency_factor) /
                  (rope.high_frequency_factor - rope.low_frequency_factor);
  return (1 - smooth) * frequency / rope.factor + smooth * frequency;
}

// The pair of elements that turns `rotations` times in the original context.
double pair_that_rotates(double rotations, const Rope& rope, std::int64_t head_size) {
  return static_cast<double>(head_size) *
         std::log(static_cast<double>(rope.original_context) / (rotations * kTwoPi)) /
         (2 * std::log(rope.theta));
}

}  // namespace

std::vector<float> frequencies(const Rope& rope, std::int64_t head_size) {
  double low = 0, high = 0;
  if (rope.scaling == "yarn") {
    low = pair_that_rotates(rope.beta_fast, rope, head_size);
    high = pair_that_rotates(rope.beta_slow, rope, head_size);
    if (rope.truncate) low = std::floor(low), high = std::ceil(high);
    low = std::max(low, 0.0);
    high = std::min(high, static_cast<double>(head_size - 1));
    if (low == high) high += 0.001;
  }
  std::vector<float> all;
  for (std::int64_t i = 0; i < head_size / 2; ++i) {
    double frequency =
        std::pow(rope.theta, -2 * static_cast<double>(i) / static_cast<double>(head_size));
    if (rope.scaling == "linear") {
      frequency /= rope.factor;
    } else if (rope.scaling == "llama3") {
      frequency = scaled_as_llama3(frequency, rope);
    } else if (rope.scaling == "yarn") {
      double slow = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
      frequency = frequency / rope.factor * slow + frequency * (1 - slow);
    }
    all.push_back(static_cast<float>(frequency));
  }
  return all;
}

}  // namespace llm

// Training data for tests of the digits example.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "examples/digits/data.h"

namespace digits {

/// Digits that need no file: one picture for each class, with noise.
inline Digits generated(std::int64_t count) {
  std::uint64_t random = 7;
  auto uniform = [&] {
    return static_cast<float>(std::ldexp(double(next_random(random) >> 11), -53));
  };
  std::vector<float> pictures(kClasses * kPixels);
  for (float& pixel : pictures) pixel = uniform();
  Digits out;
  for (std::int64_t i = 0; i < count; ++i) {
    auto label = static_cast<std::int32_t>(next_random(random) % kClasses);
    for (std::int64_t p = 0; p < kPixels; ++p)
      out.pixels.push_back(0.6f * pictures[static_cast<std::size_t>(label * kPixels + p)] +
                           0.4f * uniform());
    out.labels.push_back(label);
  }
  return out;
}

}  // namespace digits

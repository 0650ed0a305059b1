// Random layouts for property tests.
#pragma once
#include <vector>

#include "meshard/layout/layout.h"
#include "tests/support/random.h"

namespace meshard {

inline IntTuple random_tuple(TestRandom& random, int depth, std::int64_t low, std::int64_t high) {
  if (depth == 0 || random.between(0, 2) == 0) return IntTuple(random.between(low, high));
  std::vector<IntTuple> elements;
  for (std::int64_t i = random.between(0, 3); i > 0; --i)
    elements.push_back(random_tuple(random, depth - 1, low, high));
  return IntTuple(std::span<const IntTuple>(elements));
}

/// Up to a few hundred indices, strides 0..12, nesting up to 3.
inline Layout random_layout(TestRandom& random) {
  while (true) {
    IntTuple shape = random_tuple(random, 3, 1, 4);
    if (shape.product() > 500) continue;
    IntVector strides;
    for (std::size_t i = 0; i < shape.leaves().size(); ++i)
      strides.push_back(random.between(0, 12));
    return Layout(shape, shape.with_leaves(strides));
  }
}

}  // namespace meshard

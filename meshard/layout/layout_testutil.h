// Random layouts for property tests, and properties that are checked value by value.
#pragma once
#include <algorithm>
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

/// Like random_layout, but with strides of both signs.
inline Layout random_signed_layout(TestRandom& random) {
  Layout layout = random_layout(random);
  IntVector strides(layout.stride().leaves().begin(), layout.stride().leaves().end());
  for (std::int64_t& stride : strides)
    if (random.between(0, 2) == 0) stride = -stride;
  return Layout(layout.shape(), layout.shape().with_leaves(strides));
}

/// The compact layout of a random shape with its modes in random order, so that the values are a
/// permutation of 0..size-1.
inline Layout random_permuted_layout(TestRandom& random) {
  Layout compact;
  do {
    compact = Layout(random_tuple(random, 3, 1, 6));
  } while (compact.size() > 500);
  std::span<const std::int64_t> sizes = compact.shape().leaves();
  std::vector<std::size_t> order(sizes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  IntVector strides(sizes.size());
  std::int64_t running = 1;
  for (std::size_t i : order) {
    strides[i] = running;
    running *= sizes[i];
  }
  return Layout(compact.shape(), compact.shape().with_leaves(strides));
}

/// Selected layouts: compact, permuted, scaled, padded, nested, with sizes of 1 and strides of 0.
/// Some are from published tests.
inline std::vector<Layout> picked_layouts() {
  std::vector<Layout> layouts;
  for (const char* text : {"():()",
                           "1:0",
                           "1:1",
                           "4:1",
                           "4:0",
                           "4:2",
                           "(1,1):(0,0)",
                           "(3,7):(0,0)",
                           "(2,4):(0,2)",
                           "(8,4):(4,1)",
                           "(8,4):(1,8)",
                           "(2,4,6):(1,2,8)",
                           "(2,4,6):(24,6,1)",
                           "(4,2):(1,16)",
                           "(2,1,6):(1,7,2)",
                           "(4,6):(1,6)",
                           "(4,10):(1,10)",
                           "(3,2):(2,3)",
                           "(2,2):(5,2)",
                           "((2,2),(2,4)):((1,4),(8,2))",
                           "((4,4),8):((8,2),32)",
                           "(2,(3,4)):(12,(4,1))",
                           "((2,(1,2)),3):((24,(9,1)),4)",
                           "((),4,(5)):((),5,(1))",
                           "(3,(8,6)):(48,(6,1))",
                           "((8),2,(3)):((24),1,(4))",
                           "((3,5,2)):((1,3,15))",
                           "(2,3):(2,1)",
                           "(8,2):(1,2)",
                           "(10,8,6,4):(7,5,3,2)",
                           "(4,6,8,10):(2,3,5,7)",
                           "(16,16):(1024,1)"})
    layouts.push_back(Layout::parse(text).value());
  return layouts;
}

/// All values, in the order of the indices.
inline std::vector<std::int64_t> values_of(const Layout& layout) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < layout.size(); ++i) values.push_back(layout(i));
  return values;
}

/// True if `zipped` at ((i, k), (j, l, m)) equals `logical` at ((i, j), (k, l), m), at 20 random
/// places. The first two modes of `logical` are split and regrouped; the third is not.
inline bool is_gathered(TestRandom& random, const Layout& logical, const Layout& zipped) {
  for (int probe = 0; probe < 20; ++probe) {
    std::int64_t i = random.between(0, 5), j = random.between(0, 5), k = random.between(0, 5),
                 l = random.between(0, 5), m = random.between(0, 2);
    if (zipped(IntTuple{IntTuple{i, k}, IntTuple{j, l, m}}) !=
        logical(IntTuple{IntTuple{i, j}, IntTuple{k, l}, m}))
      return false;
  }
  return true;
}

}  // namespace meshard

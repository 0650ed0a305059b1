// The modes of a layout, sorted by stride.
#pragma once
#include <utility>

#include "meshard/layout/layout.h"

namespace meshard {

/// One integer of a layout's shape, with its stride.
struct Mode {
  std::int64_t stride = 0;
  std::int64_t size = 1;
  friend auto operator<=>(const Mode&, const Mode&) = default;
};

/// Insertion sort, which has less overhead than std::sort for a few modes.
template <class ModeList>
void sort_modes(ModeList& modes) {
  for (std::size_t i = 1; i < modes.size(); ++i)
    for (std::size_t k = i; k > 0 && modes[k] < modes[k - 1]; --k)
      std::swap(modes[k], modes[k - 1]);
}

/// The modes of size above 1, smallest stride first.
inline InlineVector<Mode, 6> sorted_modes(const Layout& layout) {
  std::span<const std::int64_t> sizes = layout.shape().leaves(), strides = layout.stride().leaves();
  InlineVector<Mode, 6> modes;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1) modes.push_back({strides[i], sizes[i]});
  sort_modes(modes);
  return modes;
}

/// A mode, with the amount `place` that one step along it adds to the index.
struct PlacedMode {
  std::int64_t stride = 0;
  std::int64_t size = 1;
  std::int64_t place = 1;
  friend auto operator<=>(const PlacedMode&, const PlacedMode&) = default;
};

/// sorted_modes, with their index steps.
inline InlineVector<PlacedMode, 6> placed_modes(const Layout& layout) {
  std::span<const std::int64_t> sizes = layout.shape().leaves(), strides = layout.stride().leaves();
  InlineVector<PlacedMode, 6> modes;
  std::int64_t place = 1;
  for (std::size_t i = sizes.size(); i-- > 0; place *= sizes[i])
    if (sizes[i] > 1) modes.push_back({strides[i], sizes[i], place});
  sort_modes(modes);
  return modes;
}

}  // namespace meshard

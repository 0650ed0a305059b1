// The modes of a layout in the order of their strides.
#pragma once
#include <utility>

#include "meshard/layout/layout.h"

namespace meshard {

/// One integer of a layout's shape and its stride.
struct Mode {
  std::int64_t stride = 0;
  std::int64_t size = 1;
  friend auto operator<=>(const Mode&, const Mode&) = default;
};

/// Sorts a few modes by insertion, which std::sort comes to after much ado.
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

/// A mode and what one step along it adds to the index.
struct PlacedMode {
  std::int64_t stride = 0;
  std::int64_t size = 1;
  std::int64_t place = 1;
  friend auto operator<=>(const PlacedMode&, const PlacedMode&) = default;
};

/// sorted_modes, with their places.
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

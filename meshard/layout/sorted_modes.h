// The modes of a layout in the order of their strides.
#pragma once
#include <algorithm>

#include "meshard/layout/layout.h"

namespace meshard {

/// One integer of a layout's shape and its stride.
struct Mode {
  std::int64_t stride = 0;
  std::int64_t size = 1;
  friend auto operator<=>(const Mode&, const Mode&) = default;
};

/// The modes of size above 1, smallest stride first.
inline InlineVector<Mode, 6> sorted_modes(const Layout& layout) {
  std::span<const std::int64_t> sizes = layout.shape().leaves(), strides = layout.stride().leaves();
  InlineVector<Mode, 6> modes;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1) modes.push_back({strides[i], sizes[i]});
  std::sort(modes.begin(), modes.end());
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
  std::sort(modes.begin(), modes.end());
  return modes;
}

}  // namespace meshard

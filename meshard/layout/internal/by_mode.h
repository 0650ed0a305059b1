// Applies an operation to each of the first modes of a layout.
#pragma once
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/layout/algebra.h"
#include "meshard/layout/layout.h"
#include "meshard/layout/modes.h"

namespace meshard {

/// Replaces each mode k < count by `change(mode k, k)`, a Result<Layout>. The other modes are
/// unchanged. Returns the first error.
/// @pre count is at most layout.rank()
template <class Change>
Result<Layout> by_mode(const Layout& layout, std::size_t count, Change change) {
  std::vector<Layout> modes;
  modes.reserve(layout.rank());
  for (std::size_t k = 0; k < layout.rank(); ++k) {
    if (k >= count) {
      modes.push_back(layout.mode(k));
      continue;
    }
    Result<Layout> changed = change(layout.mode(k), k);
    if (!changed) return changed.error();
    modes.push_back(*std::move(changed));
  }
  return concatenate(modes);
}

/// by_mode with the elements of the tuple `profile`: `change(mode k, element k)`.
/// @error the profile has more elements than the layout has modes.
template <class Change>
Result<Layout> by_profile(std::string_view operation, const Layout& layout, const IntTuple& profile,
                          Change change) {
  if (profile.rank() > layout.rank())
    return Error(ErrorCode::kInvalidArgument,
                 cat("[", operation, "] the profile ", profile, " has ", profile.rank(),
                     " elements, ", layout, " has ", layout.rank(), " modes"));
  return by_mode(layout, profile.rank(),
                 [&](const Layout& mode, std::size_t k) { return change(mode, profile[k]); });
}

/// An error if `tiler` is a tuple with more elements than `layout` has modes.
inline Result<void> check_tiler(std::string_view operation, const Layout& layout,
                                const Tiler& tiler) {
  if (tiler.tilers().size() <= layout.rank()) return {};
  return Error(ErrorCode::kInvalidArgument,
               cat("[", operation, "] the tiler ", tiler, " has ", tiler.tilers().size(),
                   " elements, ", layout, " has ", layout.rank(), " modes"));
}

/// by_mode with the elements of a tuple of tilers: `change(mode k, tiler k)`.
/// @error the tuple has more elements than the layout has modes.
template <class Change>
Result<Layout> by_tiler(std::string_view operation, const Layout& layout, const Tiler& tiler,
                        Change change) {
  MESHARD_RETURN_IF_ERROR(check_tiler(operation, layout, tiler));
  return by_mode(layout, tiler.tilers().size(), [&](const Layout& mode, std::size_t k) {
    return change(mode, tiler.tilers()[k]);
  });
}

// The modes of a layout, sorted by stride.

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

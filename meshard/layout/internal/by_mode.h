// Applies an operation to each of the first modes of a layout.
#pragma once
#include <string_view>
#include <vector>

#include "meshard/layout/composition.h"
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

}  // namespace meshard

// One operation for each of the first modes of a layout.
#pragma once
#include <vector>

#include "meshard/layout/concatenate.h"

namespace meshard {

/// The layout of the modes `change(mode k, k)` (a Result<Layout>) for k < count, and the other
/// modes as they are. The first error is the result.
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

}  // namespace meshard

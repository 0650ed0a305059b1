#include "meshard/layout/right_inverse.h"

#include <algorithm>

#include "meshard/layout/coalesce.h"
#include "meshard/layout/sorted_modes.h"

namespace meshard {

Layout right_inverse(const Layout& layout) {
  IntVector sizes, strides;  // fastest first
  std::int64_t reach = 1;
  for (const PlacedMode& mode : placed_modes(layout)) {
    if (mode.stride != reach) break;
    sizes.push_back(mode.size);
    strides.push_back(mode.place);
    if (__builtin_mul_overflow(mode.stride, mode.size, &reach)) break;
  }
  std::reverse(sizes.begin(), sizes.end());
  std::reverse(strides.begin(), strides.end());
  return coalesce(Layout::of_modes(std::move(sizes), std::move(strides)));
}

}  // namespace meshard

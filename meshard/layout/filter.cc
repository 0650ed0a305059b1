#include "meshard/layout/filter.h"

#include "meshard/layout/by_mode.h"
#include "meshard/layout/coalesce.h"

namespace meshard {

Layout filter(const Layout& layout) {
  IntVector sizes, strides;
  for (std::size_t i = 0; i < layout.shape().leaves().size(); ++i) {
    if (layout.shape().leaves()[i] == 1 || layout.stride().leaves()[i] == 0) continue;
    sizes.push_back(layout.shape().leaves()[i]);
    strides.push_back(layout.stride().leaves()[i]);
  }
  return coalesce(Layout::of_modes(std::move(sizes), std::move(strides)));
}

Result<Layout> filter(const Layout& layout, const IntTuple& profile) {
  if (profile.is_integer()) return filter(layout);
  return by_profile("filter", layout, profile, [](const Layout& mode, const IntTuple& element) {
    return filter(mode, element);
  });
}

}  // namespace meshard

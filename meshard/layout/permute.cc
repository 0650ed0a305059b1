#include "meshard/layout/permute.h"

#include <algorithm>
#include <vector>

#include "meshard/layout/concatenate.h"

namespace meshard {

Layout permute(const Layout& layout, IntView order) {
  IntVector sorted(order.begin(), order.end());
  std::sort(sorted.begin(), sorted.end());
  bool each_once = sorted.size() == layout.rank();
  for (std::size_t k = 0; k < sorted.size(); ++k)
    each_once &= sorted[k] == static_cast<std::int64_t>(k);
  if (!each_once)
    throw_invalid({}, "[permute] ", IntTuple::flat(order), " is not a permutation of the ",
                  layout.rank(), " modes of ", layout);
  std::vector<Layout> modes;
  for (std::int64_t k : order) modes.push_back(layout.mode(static_cast<std::size_t>(k)));
  return concatenate(modes);
}

}  // namespace meshard

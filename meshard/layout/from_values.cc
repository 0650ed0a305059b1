#include "meshard/layout/from_values.h"

#include <algorithm>

#include "meshard/layout/coalesce.h"

namespace meshard {

std::optional<Layout> from_values(IntView values) {
  std::size_t count = values.size();
  IntVector sizes, strides;
  // The modes found so far cover blocks of `block` values; the next mode repeats the block with a
  // constant stride. A run of block starts ends exactly where the next mode of the coalesced layout
  // begins.
  for (std::size_t block = 1; block < count;) {
    std::int64_t stride = values[block] - values[0];
    std::size_t run = 1;
    while (run * block < count &&
           values[run * block] - values[0] == static_cast<std::int64_t>(run) * stride)
      ++run;
    if (count % (run * block) != 0) return std::nullopt;
    sizes.push_back(static_cast<std::int64_t>(run));
    strides.push_back(stride);
    block *= run;
  }
  std::reverse(sizes.begin(), sizes.end());
  std::reverse(strides.begin(), strides.end());
  Layout layout = coalesce(Layout::of_modes(std::move(sizes), std::move(strides)));
  for (std::size_t i = 0; i < count; ++i)
    if (layout(static_cast<std::int64_t>(i)) != values[i] - values[0]) return std::nullopt;
  return layout;
}

}  // namespace meshard

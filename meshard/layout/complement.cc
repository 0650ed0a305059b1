#include "meshard/layout/complement.h"

#include <algorithm>

#include "meshard/layout/sorted_modes.h"

namespace meshard {

Result<Layout> complement(const Layout& layout, std::int64_t cotarget) {
  auto failure = [&](std::string_view why) {
    return Error(ErrorCode::kInvalidArgument,
                 cat("[complement] of ", layout, " in ", cotarget, ": ", why));
  };
  if (cotarget < 1) return failure("the bound is below 1");
  IntVector sizes, strides;  // fastest first
  std::int64_t reach = 1;    // the modes so far and their complement cover 0..reach-1
  for (const Mode& mode : sorted_modes(layout)) {
    if (mode.stride == 0) continue;
    if (mode.stride < 0) return failure("a stride is negative");
    if (mode.stride < reach)
      return failure(cat("mode ", mode.size, ":", mode.stride,
                         " overlaps the modes with smaller strides, whose extent is ", reach));
    std::int64_t copies = mode.stride / reach;
    if (copies > 1) {
      sizes.push_back(copies);
      strides.push_back(reach);
    }
    if (__builtin_mul_overflow(mode.stride, mode.size, &reach))
      return failure("the extent of the layout does not fit in 64 bits");
  }
  if (cotarget > reach) {
    sizes.push_back((cotarget - 1) / reach + 1);
    strides.push_back(reach);
  }
  // Already coalesced: a mode of `layout`, of size above 1, separates any two of these modes.
  std::reverse(sizes.begin(), sizes.end());
  std::reverse(strides.begin(), strides.end());
  return Layout::of_modes(std::move(sizes), std::move(strides));
}

}  // namespace meshard

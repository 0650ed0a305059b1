#include "meshard/layout/inverse.h"

#include <algorithm>

#include "meshard/layout/coalesce.h"
#include "meshard/layout/internal/sorted_modes.h"

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

Result<Layout> left_inverse(const Layout& layout) {
  InlineVector<PlacedMode, 6> modes = placed_modes(layout);
  auto failure = [&](const PlacedMode& mode, std::string_view why) {
    return Error(ErrorCode::kInvalidArgument, cat("[left_inverse] of ", layout, ": mode ",
                                                  mode.size, ":", mode.stride, " ", why));
  };
  std::int64_t reach = 1;
  for (const PlacedMode& mode : modes) {
    if (mode.stride == 0) return Layout(1, 0);
    if (mode.stride < 0) return failure(mode, "has a negative stride");
    std::int64_t own;
    if (__builtin_mul_overflow(mode.stride, mode.size, &own))
      return failure(mode, "has an extent that does not fit in 64 bits");
    if (own < reach)
      return failure(mode, cat("lies within the extent of a mode with a smaller stride, ", reach));
    reach = own;
  }
  // The value as a mixed-radix number, fastest digit first: one digit per mode, and one per gap
  // before a mode for the copies that fit into it (the complement); the latter are slower than all
  // modes.
  IntVector sizes, strides;
  std::int64_t unit = 1, outside = layout.size();
  for (const PlacedMode& mode : modes) {
    if (mode.stride < unit) break;
    std::int64_t copies = mode.stride / unit;
    sizes.push_back(copies);
    strides.push_back(outside);
    if (__builtin_mul_overflow(outside, copies, &outside))
      return failure(mode, "leaves more between its values than fits 64 bits");
    unit *= copies;
    if (unit != mode.stride) break;
    sizes.push_back(mode.size);
    strides.push_back(mode.place);
    unit *= mode.size;
  }
  std::reverse(sizes.begin(), sizes.end());
  std::reverse(strides.begin(), strides.end());
  return coalesce(Layout::of_modes(std::move(sizes), std::move(strides)));
}

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

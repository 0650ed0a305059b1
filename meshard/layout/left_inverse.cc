#include "meshard/layout/left_inverse.h"

#include <algorithm>

#include "meshard/layout/coalesce.h"
#include "meshard/layout/sorted_modes.h"

namespace meshard {

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

}  // namespace meshard

#include "meshard/layout/coalesce.h"

#include "meshard/layout/by_mode.h"

namespace meshard {

Layout coalesce(const Layout& layout) {
  std::span<const std::int64_t> sizes = layout.shape().leaves();
  std::span<const std::int64_t> strides = layout.stride().leaves();
  IntVector size, stride;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    std::int64_t reach;  // what does not fit 64 bits is no stride either
    if (!size.empty() && !__builtin_mul_overflow(sizes[i], strides[i], &reach) &&
        stride.back() == reach) {
      size.back() *= sizes[i];
      stride.back() = strides[i];
    } else {
      size.push_back(sizes[i]);
      stride.push_back(strides[i]);
    }
  }
  if (size.empty()) return Layout(IntTuple(1), IntTuple(0));
  if (size.size() == 1) return Layout(IntTuple(size[0]), IntTuple(stride[0]));
  return Layout(IntTuple::flat(size), IntTuple::flat(stride));
}

Result<Layout> coalesce(const Layout& layout, const IntTuple& profile) {
  if (profile.is_integer()) return coalesce(layout);
  return by_profile("coalesce", layout, profile, [](const Layout& mode, const IntTuple& element) {
    return coalesce(mode, element);
  });
}

}  // namespace meshard

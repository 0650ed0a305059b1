#include "meshard/layout/coalesce.h"

#include "meshard/layout/by_mode.h"

namespace meshard {
namespace {

// True if the mode outer:outer_stride continues size:stride without a gap.
bool continues(std::int64_t outer_stride, std::int64_t size, std::int64_t stride) {
  std::int64_t reach;  // no stride equals a product that overflows
  return !__builtin_mul_overflow(size, stride, &reach) && outer_stride == reach;
}

bool is_coalesced(const Layout& layout) {
  std::span<const std::int64_t> sizes = layout.shape().leaves(), strides = layout.stride().leaves();
  if (layout.shape().is_integer()) return sizes[0] > 1;
  if (!layout.shape().is_flat() || sizes.size() < 2) return false;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] == 1 || (i > 0 && continues(strides[i - 1], sizes[i], strides[i]))) return false;
  return true;
}

}  // namespace

Layout coalesce(const Layout& layout) {
  if (is_coalesced(layout)) return layout;
  std::span<const std::int64_t> sizes = layout.shape().leaves();
  std::span<const std::int64_t> strides = layout.stride().leaves();
  IntVector size, stride;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    if (!size.empty() && continues(stride.back(), sizes[i], strides[i])) {
      size.back() *= sizes[i];
      stride.back() = strides[i];
    } else {
      size.push_back(sizes[i]);
      stride.push_back(strides[i]);
    }
  }
  if (size.empty()) return Layout(1, 0, layout);
  if (size.size() == 1) return Layout(size[0], stride[0], layout);
  return Layout(IntTuple::flat(std::move(size)), IntTuple::flat(std::move(stride)), layout);
}

Result<Layout> coalesce(const Layout& layout, const IntTuple& profile) {
  if (profile.is_integer()) return coalesce(layout);
  return by_profile("coalesce", layout, profile, [](const Layout& mode, const IntTuple& element) {
    return coalesce(mode, element);
  });
}

}  // namespace meshard

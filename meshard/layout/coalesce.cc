#include "meshard/layout/coalesce.h"

#include "meshard/layout/internal/by_mode.h"

namespace meshard {
namespace {

// True if the mode outer:outer_stride continues size:stride without a gap.
bool continues(std::int64_t outer_stride, std::int64_t size, std::int64_t stride) {
  std::int64_t reach;  // no stride equals a product that overflows
  return !__builtin_mul_overflow(size, stride, &reach) && outer_stride == reach;
}

}  // namespace

Layout coalesce(const Layout& layout) {
  const IntTuple& shape = layout.shape();
  std::span<const std::int64_t> sizes = shape.leaves(), strides = layout.stride().leaves();
  IntVector merged_sizes, merged_strides;
  std::int64_t* size = merged_sizes.append_uninitialized(sizes.size());
  std::int64_t* stride = merged_strides.append_uninitialized(sizes.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    if (count > 0 && continues(stride[count - 1], sizes[i], strides[i])) {
      size[count - 1] *= sizes[i];
      stride[count - 1] = strides[i];
    } else {
      size[count] = sizes[i];
      stride[count++] = strides[i];
    }
  }
  if (count == 0) return Layout(1, 0, layout);
  if (count == sizes.size() && (count == 1 ? shape.is_integer() : shape.is_flat())) return layout;
  if (count == 1) return Layout(size[0], stride[0], layout);
  merged_sizes.resize(count);
  merged_strides.resize(count);
  return Layout(IntTuple::flat(std::move(merged_sizes)), IntTuple::flat(std::move(merged_strides)),
                layout);
}

Result<Layout> coalesce(const Layout& layout, const IntTuple& profile) {
  if (profile.is_integer()) return coalesce(layout);
  return by_profile("coalesce", layout, profile, [](const Layout& mode, const IntTuple& element) {
    return coalesce(mode, element);
  });
}

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

bool same_function(const Layout& a, const Layout& b) {
  return a.size() == b.size() && coalesce(a) == coalesce(b);
}

}  // namespace meshard

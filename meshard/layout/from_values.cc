#include "meshard/layout/from_values.h"

#include <algorithm>

#include "meshard/layout/coalesce.h"

namespace meshard {

namespace {

// True if `later - earlier` is `step`. The values may be anywhere in the range of 64 bits.
bool is_step(std::int64_t earlier, std::int64_t later, std::int64_t step) {
  std::int64_t difference;
  return !__builtin_sub_overflow(later, earlier, &difference) && difference == step;
}

}  // namespace

std::optional<Layout> from_values(IntView values) {
  std::size_t count = values.size();
  IntVector sizes, strides;
  std::int64_t cosize = 1;  // of the layout, which must fit 64 bits
  // The modes found so far describe the first `block` values; the next mode repeats the block with
  // a constant stride. A run of block starts ends exactly where the next mode of the coalesced
  // layout begins.
  for (std::size_t block = 1; block < count;) {
    std::int64_t stride;
    if (__builtin_sub_overflow(values[block], values[0], &stride)) return std::nullopt;
    std::size_t end = 2 * block;
    while (end < count && is_step(values[end - block], values[end], stride)) end += block;
    if (count % end != 0) return std::nullopt;
    for (std::size_t i = block; i < end; ++i)
      if (!is_step(values[i - block], values[i], stride)) return std::nullopt;
    auto size = static_cast<std::int64_t>(end / block);
    std::int64_t reach;
    if (stride == hole || __builtin_mul_overflow(size - 1, stride, &reach) ||
        __builtin_add_overflow(cosize, std::max<std::int64_t>(reach, 0), &cosize))
      return std::nullopt;
    sizes.push_back(size);
    strides.push_back(stride);
    block = end;
  }
  std::reverse(sizes.begin(), sizes.end());
  std::reverse(strides.begin(), strides.end());
  return coalesce(Layout::of_modes(std::move(sizes), std::move(strides)));
}

}  // namespace meshard

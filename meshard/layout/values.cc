#include "meshard/layout/values.h"

#include <algorithm>

#include "meshard/layout/algebra.h"
#include "meshard/layout/internal/bounded_sum.h"
#include "meshard/layout/internal/by_mode.h"

namespace meshard {

bool is_injective(const Layout& layout) {
  Layout modes = coalesce(layout);
  std::span<const std::int64_t> sizes = modes.shape().leaves(), strides = modes.stride().leaves();
  BoundedTerms terms;  // the coordinate differences along each mode
  WideInt reach = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    WideInt step = strides[i] < 0 ? -WideInt{strides[i]} : WideInt{strides[i]};
    if (step == 0) return false;
    terms.push_back({step, sizes[i] - 1});
    reach += step * (sizes[i] - 1);
  }
  if (layout.size() > reach + 1) return false;  // more indices than possible values
  std::sort(terms.begin(), terms.end(),
            [](const BoundedTerm& a, const BoundedTerm& b) { return a.step > b.step; });
  // If two indices have the same value, consider the first mode, in this order, along which they
  // differ. Without loss of generality the difference there is positive; the smaller modes must
  // cancel it.
  for (std::size_t first = 0; first < terms.size(); ++first) {
    reach -= terms[first].step * terms[first].count;
    if (reach < terms[first].step) continue;
    BoundedTerms smaller{{terms[first].step, terms[first].count - 1}};
    for (std::size_t i = first + 1; i < terms.size(); ++i)
      smaller.push_back({terms[i].step, 2 * terms[i].count});
    if (has_bounded_sum(smaller, reach - terms[first].step)) return false;
  }
  return true;
}

bool are_disjoint(const Layout& a, const Layout& b, std::int64_t offset) {
  BoundedTerms terms;  // of the differences a(i) - b(j)
  auto add = [&](const Layout& layout, int sign) {
    std::span<const std::int64_t> sizes = layout.shape().leaves();
    for (std::size_t i = 0; i < sizes.size(); ++i)
      terms.push_back({sign * WideInt{layout.stride().leaves()[i]}, sizes[i] - 1});
  };
  add(a, 1);
  add(b, -1);
  return !has_bounded_sum(terms, offset);
}

bool is_orthogonal(const Layout& layout) {
  InlineVector<Mode, 6> modes = sorted_modes(coalesce(layout));
  if (modes.size() < 2) return true;
  for (Mode& mode : modes) {
    if (mode.stride == 0) return false;
    if (mode.stride < 0 && __builtin_sub_overflow(0, mode.stride, &mode.stride)) return false;
  }
  sort_modes(modes);
  for (std::size_t i = 1; i < modes.size(); ++i) {
    std::int64_t reach;
    if (__builtin_mul_overflow(modes[i - 1].stride, modes[i - 1].size, &reach) ||
        modes[i].stride % reach != 0)
      return false;
  }
  return true;
}

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

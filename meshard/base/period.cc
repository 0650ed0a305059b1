#include "meshard/base/period.h"

#include <algorithm>
#include <vector>

namespace meshard {

std::optional<std::size_t> find_period(std::span<const std::uint64_t> sequence) {
  // The Z function of the reversed sequence (Gusfield, Algorithms on Strings, Trees and Sequences,
  // 1.3): how many of the last elements are equal to those `p` before them.
  std::size_t size = sequence.size();
  auto at = [&](std::size_t i) { return sequence[size - 1 - i]; };
  std::vector<std::size_t> equal(size, 0);
  for (std::size_t p = 1, begin = 0, end = 0; p < size; ++p) {
    std::size_t& same = equal[p];
    if (p < end) same = std::min(end - p, equal[p - begin]);
    while (p + same < size && at(same) == at(p + same)) ++same;
    if (p + same > end) {
      begin = p;
      end = p + same;
    }
    if (same >= p && 2 * (same + p) >= size) return p;
  }
  return std::nullopt;
}

}  // namespace meshard

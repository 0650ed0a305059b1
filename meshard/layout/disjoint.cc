#include "meshard/layout/disjoint.h"

#include "meshard/layout/bounded_sum.h"

namespace meshard {

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

}  // namespace meshard

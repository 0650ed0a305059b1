#include "meshard/layout/injective.h"

#include <algorithm>

#include "meshard/layout/bounded_sum.h"
#include "meshard/layout/coalesce.h"

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

}  // namespace meshard

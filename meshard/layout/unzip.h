// Helpers shared by the zipped and tiled forms of divide and product.
#pragma once
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/layout/by_mode.h"

namespace meshard {

/// Applies `split` mode by mode and collects the halves: ((first halves), (second halves, other
/// modes)). `split` takes a layout and a tiler and returns a Result of a layout of two modes. A
/// tiler that is not a tuple applies to the whole layout; none gives `1:0` as the first half.
template <class Split>
Result<Layout> unzip(std::string_view operation, const Layout& a, const Tiler& b, Split split) {
  if (b.kind() == Tiler::Kind::kNone) return concatenate(Layout(IntTuple(1), IntTuple(0)), a);
  if (b.kind() != Tiler::Kind::kTuple) return split(a, b);
  MESHARD_RETURN_IF_ERROR(check_tiler(operation, a, b));
  std::vector<Layout> firsts, seconds;
  for (std::size_t k = 0; k < a.rank(); ++k) {
    if (k >= b.tilers().size()) {
      seconds.push_back(a.mode(k));
      continue;
    }
    MESHARD_ASSIGN_OR_RETURN(Layout halves, unzip(operation, a.mode(k), b.tilers()[k], split));
    firsts.push_back(halves.mode(0));
    seconds.push_back(halves.mode(1));
  }
  return concatenate(concatenate(firsts), concatenate(seconds));
}

/// Converts (first, (second, third, ...)) to (first, second, third, ...).
inline Layout tiled_form(const Layout& zipped) {
  std::vector<Layout> modes{zipped.mode(0)};
  Layout rest = zipped.mode(1);
  for (std::size_t k = 0; k < rest.rank(); ++k) modes.push_back(rest.mode(k));
  return concatenate(modes);
}

}  // namespace meshard

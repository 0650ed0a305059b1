#include "meshard/layout/tiling.h"

#include <string_view>
#include <vector>

#include "meshard/layout/composition.h"
#include "meshard/layout/internal/by_mode.h"
#include "meshard/layout/inverse.h"

namespace meshard {
namespace {

// Applies `split` mode by mode and collects the halves: ((first halves), (second halves, other
// modes)). `split` takes a layout and a tiler and returns a Result of a layout of two modes. A
// tiler that is not a tuple applies to the whole layout; none gives `1:0` as the first half.
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

// Converts (first, (second, third, ...)) to (first, second, third, ...).
Layout tiled_form(const Layout& zipped) {
  std::vector<Layout> modes{zipped.mode(0)};
  Layout rest = zipped.mode(1);
  for (std::size_t k = 0; k < rest.rank(); ++k) modes.push_back(rest.mode(k));
  return concatenate(modes);
}

}  // namespace

Result<Layout> logical_divide(const Layout& a, const Tiler& b) {
  if (b.kind() == Tiler::Kind::kNone) return a;
  if (b.kind() == Tiler::Kind::kTuple) return by_tiler("logical_divide", a, b, logical_divide);
  MESHARD_ASSIGN_OR_RETURN(Layout rest, complement(b.layout(), a.size()));
  return composition(a, concatenate(b.layout(), rest));
}

Result<Layout> zipped_divide(const Layout& a, const Tiler& b) {
  return unzip("zipped_divide", a, b, logical_divide);
}

Result<Layout> tiled_divide(const Layout& a, const Tiler& b) {
  MESHARD_ASSIGN_OR_RETURN(Layout zipped, zipped_divide(a, b));
  return tiled_form(zipped);
}

Result<Layout> logical_product(const Layout& a, const Tiler& b) {
  if (b.kind() == Tiler::Kind::kNone) return a;
  if (b.kind() == Tiler::Kind::kTuple) return by_tiler("logical_product", a, b, logical_product);
  auto failure = [&](std::string_view why) {
    return Error(ErrorCode::kInvalidArgument,
                 cat("[logical_product] of ", a, " and ", b, ": ", why));
  };
  if (b.kind() == Tiler::Kind::kInteger)
    return failure(cat("an integer does not define how the copies are arranged; for ", b,
                       " consecutive copies, pass ", b.layout()));
  std::int64_t cotarget;
  if (__builtin_mul_overflow(a.size(), b.layout().cosize(), &cotarget))
    return failure("the values do not fit 64 bits");
  MESHARD_ASSIGN_OR_RETURN(Layout places, complement(a, cotarget));
  MESHARD_ASSIGN_OR_RETURN(Layout copies, composition(places, b.layout()));
  return concatenate(a, copies);
}

Result<Layout> zipped_product(const Layout& a, const Tiler& b) {
  return unzip("zipped_product", a, b, logical_product);
}

Result<Layout> tiled_product(const Layout& a, const Tiler& b) {
  MESHARD_ASSIGN_OR_RETURN(Layout zipped, zipped_product(a, b));
  return tiled_form(zipped);
}

}  // namespace meshard

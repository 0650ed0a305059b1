#include "meshard/layout/logical_divide.h"

#include "meshard/layout/by_mode.h"
#include "meshard/layout/complement.h"
#include "meshard/layout/composition.h"

namespace meshard {

Result<Layout> logical_divide(const Layout& a, const Tiler& b) {
  if (b.kind() == Tiler::Kind::kNone) return a;
  if (b.kind() == Tiler::Kind::kTuple) return by_tiler("logical_divide", a, b, logical_divide);
  MESHARD_ASSIGN_OR_RETURN(Layout rest, complement(b.layout(), a.size()));
  return composition(a, concatenate(b.layout(), rest));
}

}  // namespace meshard

#include "meshard/layout/flatten.h"

namespace meshard {

IntTuple flatten(const IntTuple& tuple) { return IntTuple::flat(tuple.leaves()); }

Layout flatten(const Layout& layout) {
  return Layout(flatten(layout.shape()), flatten(layout.stride()));
}

}  // namespace meshard

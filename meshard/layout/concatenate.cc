#include "meshard/layout/concatenate.h"

#include <vector>

namespace meshard {

Layout concatenate(std::span<const Layout> layouts) {
  std::vector<IntTuple> shapes, strides;
  shapes.reserve(layouts.size());
  strides.reserve(layouts.size());
  for (const Layout& layout : layouts) {
    shapes.push_back(layout.shape());
    strides.push_back(layout.stride());
  }
  return Layout(IntTuple(std::span<const IntTuple>(shapes)),
                IntTuple(std::span<const IntTuple>(strides)));
}

Layout concatenate(std::initializer_list<Layout> layouts) {
  return concatenate(std::span<const Layout>(layouts.begin(), layouts.size()));
}

}  // namespace meshard

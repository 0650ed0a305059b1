#include "meshard/layout/concatenate.h"

namespace meshard {
namespace {

using Tuples = std::span<const IntTuple* const>;

}  // namespace

Layout concatenate(std::span<const Layout> layouts) {
  InlineVector<const IntTuple*, 8> shapes, strides;
  shapes.reserve(layouts.size());
  strides.reserve(layouts.size());
  for (const Layout& layout : layouts) {
    shapes.push_back(&layout.shape());
    strides.push_back(&layout.stride());
  }
  return Layout(IntTuple(Tuples(shapes)), IntTuple(Tuples(strides)));
}

Layout concatenate(const Layout& first, const Layout& second) {
  const IntTuple *shapes[] = {&first.shape(), &second.shape()},
                 *strides[] = {&first.stride(), &second.stride()};
  IntTuple shape{Tuples(shapes)}, stride{Tuples(strides)};
  std::int64_t size, cosize;
  if (__builtin_mul_overflow(first.size(), second.size(), &size) ||
      __builtin_add_overflow(first.cosize(), second.cosize() - 1, &cosize))
    return Layout(std::move(shape), std::move(stride));  // an error that names both
  return Layout(std::move(shape), std::move(stride), size, cosize);
}

Layout concatenate(std::initializer_list<Layout> layouts) {
  return concatenate(std::span<const Layout>(layouts.begin(), layouts.size()));
}

}  // namespace meshard

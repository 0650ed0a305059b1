#include "meshard/layout/slice.h"

#include <vector>

#include "meshard/layout/coordinate.h"

namespace meshard {
namespace {

void append_kept(const IntTuple& tuple, const IntTuple& coordinate, std::vector<IntTuple>& kept) {
  if (coordinate.is_integer()) {
    if (coordinate.value() == hole) kept.push_back(tuple);
    return;
  }
  if (tuple.is_integer() || tuple.rank() != coordinate.rank())
    throw_invalid({}, "[slice] coordinate ", coordinate, " does not fit ", tuple);
  for (std::size_t i = 0; i < tuple.rank(); ++i) append_kept(tuple[i], coordinate[i], kept);
}

}  // namespace

IntTuple slice(const IntTuple& tuple, const IntTuple& coordinate) {
  std::vector<IntTuple> kept;
  append_kept(tuple, coordinate, kept);
  return IntTuple(std::span<const IntTuple>(kept));
}

Layout slice(const Layout& layout, const IntTuple& coordinate) {
  return Layout(slice(layout.shape(), coordinate), slice(layout.stride(), coordinate));
}

OffsetLayout slice_and_offset(const Layout& layout, const IntTuple& coordinate) {
  return {slice(layout, coordinate), value_of(coordinate, layout.shape(), layout.stride())};
}

}  // namespace meshard

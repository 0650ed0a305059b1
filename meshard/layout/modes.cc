#include "meshard/layout/modes.h"

#include <algorithm>
#include <vector>

#include "meshard/layout/algebra.h"
#include "meshard/layout/int_tuple.h"

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

IntTuple flatten(const IntTuple& tuple) { return IntTuple::flat(tuple.leaves()); }

Layout flatten(const Layout& layout) {
  return Layout(flatten(layout.shape()), flatten(layout.stride()));
}

Layout permute(const Layout& layout, IntView order) {
  IntVector sorted(order.begin(), order.end());
  std::sort(sorted.begin(), sorted.end());
  bool each_once = sorted.size() == layout.rank();
  for (std::size_t k = 0; k < sorted.size(); ++k)
    each_once &= sorted[k] == static_cast<std::int64_t>(k);
  if (!each_once)
    throw_invalid({}, "[permute] ", IntTuple::flat(order), " is not a permutation of the ",
                  layout.rank(), " modes of ", layout);
  std::vector<Layout> modes;
  for (std::int64_t k : order) modes.push_back(layout.mode(static_cast<std::size_t>(k)));
  return concatenate(modes);
}

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

namespace {

// The pieces of a mode as a tuple, which is empty for size 1.
IntTuple pieces_of(const IntTuple& mode, std::int64_t size) {
  if (!mode.is_integer()) return mode;
  // Not IntTuple{mode}: compilers that implement only CWG 1467 treat it as a copy.
  return size == 1 ? IntTuple() : IntTuple(std::span<const IntTuple>(&mode, 1));
}

}  // namespace

Result<Layout> split(const Layout& layout, IntView sizes) {
  IntTuple wanted = IntTuple::flat(sizes);
  auto failure = [&](std::string_view why) {
    return Error(ErrorCode::kInvalidArgument,
                 cat("[split] ", layout, " into sizes ", wanted, ": ", why));
  };
  std::int64_t product = 1;
  for (std::int64_t size : sizes) {
    if (size < 1) return failure("a size is below 1");
    if (__builtin_mul_overflow(product, size, &product)) return failure("the products differ");
  }
  if (product != layout.size()) return failure("the products differ");
  Result<Layout> cut = composition(layout, Layout(wanted));
  if (!cut) return failure(cut.error().message());
  std::vector<IntTuple> shapes, strides;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    shapes.push_back(pieces_of(cut->shape()[k], sizes[k]));
    strides.push_back(pieces_of(cut->stride()[k], sizes[k]));
  }
  return Layout(IntTuple(std::span<const IntTuple>(shapes)),
                IntTuple(std::span<const IntTuple>(strides)));
}

}  // namespace meshard

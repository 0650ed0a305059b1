// Layouts with other modes: concatenated, flattened, permuted, sliced, split (row-major).
#pragma once
#include <cstdint>
#include <initializer_list>
#include <span>

#include "meshard/layout/layout.h"

namespace meshard {

/// The layout whose mode k is `layouts[k]` with its nesting; `():()` for an empty list.
/// @post the value at coordinate (i, j, ...) is layouts[0](i) + layouts[1](j) + ...
/// @error size or cosize do not fit 64 bits.
Layout concatenate(std::span<const Layout> layouts);
Layout concatenate(std::initializer_list<Layout> layouts);
Layout concatenate(const Layout& first, const Layout& second);

/// The tuple of all integers, left to right: `((2,3),4)` gives `(2,3,4)`, `4` gives `(4)`.
IntTuple flatten(const IntTuple& tuple);

/// The same function with one mode for each integer of the shape.
/// @post flatten(L)(i) = L(i) for all i in 0..size-1; the depth is 1.
Layout flatten(const Layout& layout);

/// The layout whose mode k is mode order[k] of `layout`.
/// @post the value at coordinate (c[order[0]], c[order[1]], ...) is the layout's at c.
/// @error `order` does not hold each of 0..rank-1 once.
Layout permute(const Layout& layout, IntView order);

/// The elements of `tuple` where `coordinate` has holes, as a list. (3,(4,(5,6))) at (_,(0,_)) is
/// (3,(5,6)). If `coordinate` itself is a hole, the result is the tuple with `tuple` as its only
/// element.
/// @error the coordinate does not match the tuple's nesting.
IntTuple slice(const IntTuple& tuple, const IntTuple& coordinate);

/// The layout of the modes where `coordinate` has holes; `():()` if it has none.
/// @post see slice_and_offset
/// @error the coordinate does not match the shape's nesting.
Layout slice(const Layout& layout, const IntTuple& coordinate);

/// A layout whose values are relative to `offset`.
struct OffsetLayout {
  Layout layout;
  std::int64_t offset = 0;
  friend bool operator==(const OffsetLayout&, const OffsetLayout&) = default;
};

/// The slice, and the value of the fixed part of the coordinate as its offset.
/// @post offset + layout(c) is the value of the whole layout at the coordinate whose holes are
/// filled with c.
/// @error the coordinate does not match the shape's nesting.
OffsetLayout slice_and_offset(const Layout& layout, const IntTuple& coordinate);

/// The same function with one top-level mode for each of `sizes`, outermost first. Each mode is a
/// tuple of the pieces of `layout`'s modes that fall into it.
/// @post split(L, s)(i) = L(i) for all i, and the size of its mode k is s[k].
/// @error a size is below 1; the product of `sizes` is not layout.size(); the boundary between two
/// sizes cuts a mode of `layout` unevenly.
Result<Layout> split(const Layout& layout, IntView sizes);

}  // namespace meshard

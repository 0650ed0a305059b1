// Slice: a layout with some coordinates fixed (row-major).
#pragma once
#include <cstdint>

#include "meshard/layout/layout.h"

namespace meshard {

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

}  // namespace meshard

// Slice: a layout with some coordinates fixed (row-major).
#pragma once
#include <cstdint>

#include "meshard/layout/layout.h"

namespace meshard {

/// The elements of `tuple` where `coordinate` has holes, one after the other: (3,(4,(5,6))) at
/// (_,(0,_)) is (3,(5,6)). A hole for the whole gives the tuple of it alone.
/// @error the coordinate does not fit the tuple's nesting.
IntTuple slice(const IntTuple& tuple, const IntTuple& coordinate);

/// The layout of the modes where `coordinate` has holes; `():()` if it has none.
/// @post see slice_and_offset
/// @error the coordinate does not fit the shape's nesting.
Layout slice(const Layout& layout, const IntTuple& coordinate);

/// A layout whose values count from `offset`.
struct OffsetLayout {
  Layout layout;
  std::int64_t offset = 0;
  friend bool operator==(const OffsetLayout&, const OffsetLayout&) = default;
};

/// The slice, and the value of the integers of the coordinate.
/// @post offset + layout(c) is the value of the whole layout at the coordinate whose holes are
/// filled with c.
/// @error the coordinate does not fit the shape's nesting.
OffsetLayout slice_and_offset(const Layout& layout, const IntTuple& coordinate);

}  // namespace meshard

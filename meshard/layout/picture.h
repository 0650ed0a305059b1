// A layout as a picture.
#pragma once
#include <string>

#include "meshard/layout/layout.h"

namespace meshard {

/// A grid of the values drawn with box characters (UTF-8): the last mode runs to the right, the one
/// before it downwards, each labelled with what it is; a nested mode is read as one. A grid is
/// drawn for each index of the modes before these.
///
/// `picture(Layout({2, 3}, {1, 2}))`:
/// ```
///         3:2 →
///       ┌───┬───┬───┐
/// 2:1 ↓ │ 0 │ 2 │ 4 │
///       ├───┼───┼───┤
///       │ 1 │ 3 │ 5 │
///       └───┴───┴───┘
/// ```
/// @error more than 4096 values: too many to look at.
std::string picture(const Layout& layout);

/// The same as a self-contained SVG image; equal values have equal colours.
/// @error as above
std::string picture_svg(const Layout& layout);

}  // namespace meshard

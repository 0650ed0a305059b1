// Draws a layout as a picture.
#pragma once
#include <string>

#include "meshard/layout/layout.h"

namespace meshard {

/// Draws the values of a layout as a grid of box characters (UTF-8). The last mode runs to the
/// right and the mode before it runs down; each is labeled, and a nested mode is drawn as one.
/// There is one grid for each index of the remaining modes.
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
/// @error more than 4096 values, which would not be readable.
std::string picture(const Layout& layout);

/// Draws the layout as a self-contained SVG image; equal values have equal colors.
/// @error as above
std::string picture_svg(const Layout& layout);

}  // namespace meshard

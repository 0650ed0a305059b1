// Draws layouts and other tables as pictures.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/layout/layout.h"

namespace meshard {

/// A cell of a table: its text, and the numbers of its colors in SVG, side by side. Equal numbers
/// get equal colors; nearby numbers get distinct colors.
struct GridCell {
  std::string text;
  std::vector<std::int64_t> colors = {};
};

/// A table: `cells[row][column]`, with rows of equal length. `title` is printed above the table,
/// `across` above the columns, `down` to the left of the first row; each may be empty. Text is
/// UTF-8.
struct Grid {
  std::string title = {};
  std::string down = {};
  std::string across = {};
  std::vector<std::vector<GridCell>> cells = {};
};

/// The maximum number of cells to draw; more would not be readable.
inline constexpr std::int64_t kMostCells = 4096;

/// Draws the tables with box characters, one below the other. All cells of a table have the width
/// of its widest text, in characters.
std::string grid_picture(std::span<const Grid> grids);

/// Draws the tables as a self-contained SVG image. @pre there is a table, and each has a cell
std::string grid_picture_svg(std::span<const Grid> grids);

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
/// @error the errors of picture()
std::string picture_svg(const Layout& layout);

}  // namespace meshard

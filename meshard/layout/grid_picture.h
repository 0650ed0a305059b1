// Draws tables with box characters for the terminal, and as SVG.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace meshard

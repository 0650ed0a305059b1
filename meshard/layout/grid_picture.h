// Tables as pictures: of box characters for the terminal, and as SVG.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshard {

/// One field of a table: its text, and the numbers of the colours that it has in SVG, side by side.
/// Equal numbers are equal colours; numbers near one another are colours that differ.
struct GridCell {
  std::string text;
  std::vector<std::int64_t> colours = {};
};

/// One table: `cells[row][column]`, all rows of the same length. `title` is written above,
/// `across` above the columns, `down` at the left of the first row; each may be empty. Text is
/// UTF-8.
struct Grid {
  std::string title = {};
  std::string down = {};
  std::string across = {};
  std::vector<std::vector<GridCell>> cells = {};
};

/// More cells than this are too many to look at.
inline constexpr std::int64_t kMostCells = 4096;

/// The tables, one below the other, drawn with box characters. Cells are as wide as the widest of
/// their table, counted in characters.
std::string grid_picture(std::span<const Grid> grids);

/// The same as a self-contained SVG image. @pre there is a table, and each has a cell
std::string grid_picture_svg(std::span<const Grid> grids);

}  // namespace meshard

#include "meshard/layout/picture.h"

#include "meshard/layout/grid_picture.h"

namespace meshard {
namespace {

std::vector<Grid> value_grids(const Layout& layout) {
  if (layout.size() > kMostCells)
    throw_invalid({}, "[picture] ", layout.size(), " values are too many to draw; the limit is ",
                  kMostCells);
  std::size_t rank = layout.rank();
  std::int64_t columns = rank >= 1 ? layout.shape()[rank - 1].product() : 1;
  std::int64_t rows = rank >= 2 ? layout.shape()[rank - 2].product() : 1;
  std::vector<Grid> grids;
  for (std::int64_t index = 0; index < layout.size();) {
    Grid grid;
    std::int64_t outer = layout.size(), rest = index;  // the outer modes' indices identify the grid
    for (std::size_t i = 0; i + 2 < rank; ++i) {
      outer /= layout.shape()[i].product();
      append(grid.title, cat(i == 0 ? "mode " : ", mode ", i, " = ", rest / outer));
      rest %= outer;
    }
    if (rank >= 2) grid.down = layout.mode(rank - 2).to_string();
    if (rank >= 1) grid.across = layout.mode(rank - 1).to_string();
    for (std::int64_t r = 0; r < rows; ++r) {
      grid.cells.emplace_back();
      for (std::int64_t c = 0; c < columns; ++c, ++index)
        grid.cells.back().push_back({cat(layout(index)), {layout(index)}});
    }
    grids.push_back(std::move(grid));
  }
  return grids;
}

}  // namespace

std::string picture(const Layout& layout) { return grid_picture(value_grids(layout)); }
std::string picture_svg(const Layout& layout) { return grid_picture_svg(value_grids(layout)); }

}  // namespace meshard

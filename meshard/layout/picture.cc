#include "meshard/layout/picture.h"

#include <algorithm>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

std::size_t characters(std::string_view text) {  // counts all bytes but UTF-8 continuation bytes
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::size_t widest_cell(const Grid& grid) {
  std::size_t widest = 1;
  for (const auto& row : grid.cells)
    for (const GridCell& cell : row) widest = std::max(widest, characters(cell.text));
  return widest;
}

void spaces(std::string& out, std::size_t count) { out.append(count, ' '); }

void rule(std::string& out, std::size_t indent, std::size_t columns, std::size_t cell,
          std::string_view left, std::string_view middle, std::string_view right) {
  spaces(out, indent);
  append(out, left);
  for (std::size_t c = 0; c < columns; ++c) {
    if (c > 0) append(out, middle);
    for (std::size_t i = 0; i < cell + 2; ++i) append(out, "─");
  }
  append(out, right);
  out += '\n';
}

void draw(std::string& out, const Grid& grid) {
  std::size_t columns = grid.cells.empty() ? 0 : grid.cells[0].size(), cell = widest_cell(grid);
  std::string label = grid.down.empty() ? "" : cat(grid.down, " ↓ ");
  std::size_t indent = characters(label);
  if (!grid.title.empty()) append(out, cat(grid.title, '\n'));
  if (!grid.across.empty()) {
    spaces(out, indent + 2);
    append(out, cat(grid.across, " →\n"));
  }
  rule(out, indent, columns, cell, "┌", "┬", "┐");
  for (std::size_t r = 0; r < grid.cells.size(); ++r) {
    if (r > 0) rule(out, indent, columns, cell, "├", "┼", "┤");
    if (r == 0)
      append(out, label);
    else
      spaces(out, indent);
    for (const GridCell& field : grid.cells[r]) {
      append(out, "│ ");
      std::size_t pad = cell - characters(field.text);
      spaces(out, pad / 2);
      append(out, field.text);
      spaces(out, pad - pad / 2 + 1);
    }
    append(out, "│\n");
  }
  rule(out, indent, columns, cell, "└", "┴", "┘");
}

// In pixels.
constexpr int kHeight = 40, kMargin = 16, kLine = 20, kDigit = 9, kLeastCell = 56,
              kLeastWidth = 320;

// Hues are a golden angle apart, so that consecutive numbers get distinct colors.
std::string color(std::int64_t number) {
  std::int64_t hue = (number % 360 + 360) % 360 * 137 % 360;
  return cat("hsl(", hue, ",60%,", number / 360 % 2 == 0 ? 78 : 66, "%)");
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) append(out, c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string_view(&c, 1));
  return out;
}

std::string text_at(int x, int y, std::string_view text, std::string_view anchor) {
  return cat("<text x=\"", x, "\" y=\"", y, "\" text-anchor=\"", anchor, "\">", escaped(text),
             "</text>\n");
}

std::string rectangle(int x, int y, int width, std::string_view look) {
  return cat("<rect x=\"", x, "\" y=\"", y, "\" width=\"", width, "\" height=\"", kHeight, "\" ",
             look, "/>\n");
}

std::string cell_svg(const GridCell& cell, int x, int y, int width) {
  std::string out;
  int count = static_cast<int>(cell.colors.size());
  for (int i = 0; i < count;
       ++i) {  // one stripe per color; adjacent stripes round their common edge alike
    int from = width * i / count, to = width * (i + 1) / count;
    append(out, rectangle(x + from, y, to - from,
                          cat("fill=\"", color(cell.colors[static_cast<std::size_t>(i)]), '"')));
  }
  append(out, rectangle(x, y, width, "fill=\"none\" stroke=\"#333\""));
  return out + text_at(x + width / 2, y + kHeight / 2 + 5, cell.text, "middle");
}

}  // namespace

std::string grid_picture(std::span<const Grid> grids) {
  std::string out;
  for (const Grid& grid : grids) draw(out, grid);
  return out;
}

std::string grid_picture_svg(std::span<const Grid> grids) {
  std::size_t widest = 1, columns = 1, label = 1;
  for (const Grid& grid : grids) {
    widest = std::max(widest, widest_cell(grid));
    columns = std::max(columns, grid.cells[0].size());
    for (const std::string* line : {&grid.title, &grid.down, &grid.across})
      label = std::max(label, characters(*line) + 2);
  }
  int width = std::max(kLeastCell, static_cast<int>(widest + 2) * kDigit), y = kMargin;
  std::string body;
  for (const Grid& grid : grids) {
    for (const std::string& line : {grid.title, grid.down.empty() ? "" : cat(grid.down, " ↓"),
                                    grid.across.empty() ? "" : cat(grid.across, " →")})
      if (!line.empty()) append(body, text_at(kMargin, y += kLine, line, "start"));
    y += kLine / 2;
    for (const auto& row : grid.cells) {
      int x = kMargin;
      for (const GridCell& cell : row) {
        append(body, cell_svg(cell, x, y, width));
        x += width;
      }
      y += kHeight;
    }
  }
  int inside = std::max(static_cast<int>(columns) * width, static_cast<int>(label) * kDigit);
  return cat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"",
             std::max(inside + 2 * kMargin, kLeastWidth), "\" height=\"", y + kMargin,
             "\" font-family=\"monospace\" font-size=\"14\">\n",
             "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n", body, "</svg>\n");
}

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

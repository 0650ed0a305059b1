#include "meshard/mesh/mesh.h"
#include "meshard/sharding/picture.h"
#include "meshard/sharding/tile_grid.h"

namespace meshard {
namespace {

// In pixels.
constexpr int kHeight = 40, kMargin = 16, kLine = 20, kDigit = 9;

// Hues a golden angle apart, so that neighbouring positions differ.
std::string colour(std::int64_t position) {
  return cat("hsl(", position % 360 * 137 % 360, ",60%,", position / 360 % 2 == 0 ? 78 : 66, "%)");
}

std::string text_at(int x, int y, std::string_view text, std::string_view anchor) {
  return cat("<text x=\"", x, "\" y=\"", y, "\" text-anchor=\"", anchor, "\">", text, "</text>\n");
}

std::string cell(const Mesh& mesh, const std::vector<std::int64_t>& positions, int x, int y,
                 int width) {
  std::string out, ids;
  int count = static_cast<int>(positions.size());
  for (int i = 0; i < count;
       ++i) {  // a stripe for each replica; borders rounded alike on both sides
    std::int64_t position = positions[static_cast<std::size_t>(i)];
    int from = width * i / count, to = width * (i + 1) / count;
    append(out, cat("<rect x=\"", x + from, "\" y=\"", y, "\" width=\"", to - from, "\" height=\"",
                    kHeight, "\" fill=\"", colour(position), "\"/>\n"));
    append(ids, cat(i == 0 ? "" : ",", mesh.device_id(position)));
  }
  append(out, cat("<rect x=\"", x, "\" y=\"", y, "\" width=\"", width, "\" height=\"", kHeight,
                  "\" fill=\"none\" stroke=\"#333\"/>\n"));
  return out + text_at(x + width / 2, y + kHeight / 2 + 5, ids, "middle");
}

int cell_width(const Sharding& sharding) {
  std::size_t longest = 1;
  for (std::int64_t id : sharding.mesh().device_ids()) longest = std::max(longest, cat(id).size());
  return std::max(
      56,
      static_cast<int>(longest + 1) * kDigit * static_cast<int>(sharding.num_replicas()) + kDigit);
}

}  // namespace

std::string picture_svg(const Sharding& sharding) {
  std::vector<TileGrid> grids = tile_grids(sharding);
  int width = cell_width(sharding);
  int columns = static_cast<int>(grids[0].cells[0].size());
  int y = kMargin;
  std::string body;
  for (const TileGrid& grid : grids) {
    for (const std::string& line : {grid.title, grid.down.empty() ? "" : cat(grid.down, " ↓"),
                                    grid.across.empty() ? "" : cat(grid.across, " →")})
      if (!line.empty()) append(body, text_at(kMargin, y += kLine, line, "start"));
    y += kLine / 2;
    for (const auto& row : grid.cells) {
      for (std::size_t c = 0; c < row.size(); ++c)
        append(body,
               cell(sharding.mesh(), row[c], kMargin + static_cast<int>(c) * width, y, width));
      y += kHeight;
    }
  }
  constexpr int kLeastWidth = 320;  // room for the labels
  int total = std::max(columns * width + 2 * kMargin, kLeastWidth);
  return cat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", total, "\" height=\"",
             y + kMargin, "\" font-family=\"monospace\" font-size=\"14\">\n", body, "</svg>\n");
}

}  // namespace meshard

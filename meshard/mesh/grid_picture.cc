#include "meshard/mesh/grid_picture.h"

#include <algorithm>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

std::size_t width(std::string_view text) {  // characters: bytes that do not continue one
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
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

}  // namespace

std::string grid_picture(const std::vector<std::vector<std::string>>& cells, std::string_view down,
                         std::string_view across) {
  std::size_t columns = cells.empty() ? 0 : cells[0].size(), cell = 1;
  for (const auto& row : cells)
    for (const std::string& text : row) cell = std::max(cell, width(text));
  std::string label = down.empty() ? "" : cat(down, " ↓ ");
  std::size_t indent = width(label);
  std::string out;
  if (!across.empty()) {
    spaces(out, indent + 2);
    append(out, cat(across, " →\n"));
  }
  rule(out, indent, columns, cell, "┌", "┬", "┐");
  for (std::size_t r = 0; r < cells.size(); ++r) {
    if (r > 0) rule(out, indent, columns, cell, "├", "┼", "┤");
    if (r == 0)
      append(out, label);
    else
      spaces(out, indent);
    for (const std::string& text : cells[r]) {
      append(out, "│ ");
      std::size_t pad = cell - width(text);
      spaces(out, pad / 2);
      append(out, text);
      spaces(out, pad - pad / 2 + 1);
    }
    append(out, "│\n");
  }
  rule(out, indent, columns, cell, "└", "┴", "┘");
  return out;
}

}  // namespace meshard

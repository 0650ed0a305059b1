// Tables in the terminal, drawn with box characters.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace meshard {

/// One table: `cells[row][column]`, all rows of the same length; `across` is written above and
/// `down` at the left of the first row. Cells are as wide as the widest. Text is UTF-8 and counted
/// in characters.
std::string grid_picture(const std::vector<std::vector<std::string>>& cells, std::string_view down,
                         std::string_view across);

}  // namespace meshard

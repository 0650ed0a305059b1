// Text for the width of the terminal.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace meshard::tool {

/// The number of columns of the terminal that standard output goes to: COLUMNS, otherwise what the
/// terminal reports. 0: it is not a terminal, or its width is not known.
std::size_t output_width();

/// Breaks lines that are longer than `width` at spaces. A continued line is indented like the last
/// column of the line: text after two or more spaces; without columns, by two more spaces than the
/// line. Lines of pictures (box-drawing characters)
/// and words longer than a line stay as they are. `width` 0: nothing is broken.
std::string wrapped(std::string_view text, std::size_t width);

/// Prints text to standard output, wrapped for the terminal.
void print_text(std::string_view text);

}  // namespace meshard::tool

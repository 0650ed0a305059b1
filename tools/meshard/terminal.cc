// Tested in tools/meshard/terminal_test.cc and check_command_line.py.
#include "tools/meshard/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace meshard::tool {
namespace {

constexpr std::size_t kLeast = 20;  // narrower terminals get lines of this length

std::size_t columns_variable() {
  const char* text = std::getenv("COLUMNS");
  if (text == nullptr) return 0;
  std::string_view digits(text);
  std::size_t columns = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), columns);
  return error == std::errc() && end == digits.data() + digits.size() ? columns : 0;
}

// Characters, not bytes, of UTF-8.
std::size_t length_of(std::string_view text) {
  std::size_t length = 0;
  for (char c : text) length += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return length;
}

bool is_picture(std::string_view line) {
  for (std::size_t at = line.find("\xE2"); at != line.npos; at = line.find("\xE2", at + 1))
    if (at + 1 < line.size() && (line[at + 1] == '\x94' || line[at + 1] == '\x95'))  // U+2500..257F
      return true;
  return false;
}

// Where the last column of a line begins, if it has one and a continued line has room there;
// otherwise two more than the indentation of the line.
std::size_t last_column(std::string_view line, std::size_t width) {
  std::size_t indentation = line.find_first_not_of(' '), column = indentation;
  for (std::size_t at = line.find("  ", indentation); at != line.npos; at = line.find("  ", column))
    if ((column = line.find_first_not_of(' ', at)) == line.npos) return indentation;
  return column > indentation && column < width / 2 ? column : indentation + 2;
}

void append_wrapped(std::string& out, std::string_view line, std::size_t width) {
  if (length_of(line) <= width || is_picture(line)) {
    out += line;
    return;
  }
  std::size_t column = last_column(line, width), used = 0;
  bool first = true;
  for (std::size_t at = 0; at < line.size();) {
    std::size_t word = line.find_first_not_of(' ', at);
    if (word == line.npos) break;
    std::size_t end = std::min(line.find(' ', word), line.size());
    std::size_t length = length_of(line.substr(word, end - word));
    if (!first && used + (word - at) + length > width) {
      out += '\n';
      out.append(column, ' ');
      used = column;
    } else {
      out.append(line.substr(at, word - at));
      used += word - at;
    }
    out.append(line.substr(word, end - word));
    used += length;
    first = false;
    at = end;
  }
}

}  // namespace

std::size_t output_width() {
  if (::isatty(STDOUT_FILENO) == 0) return 0;
  if (std::size_t columns = columns_variable(); columns > 0) return columns;
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string wrapped(std::string_view text, std::size_t width) {
  if (width == 0) return std::string(text);
  width = std::max(width, kLeast);
  std::string out;
  while (!text.empty()) {
    std::size_t end = text.find('\n');
    append_wrapped(out, text.substr(0, end), width);
    if (end == text.npos) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

void print_text(std::string_view text) {
  (void)std::fputs(wrapped(text, output_width()).c_str(), stdout);
}

}  // namespace meshard::tool

#include "meshard/graph/structure.h"

#include <algorithm>
#include <cstring>

namespace meshard {

void structure::internal::append_text(std::string_view text, std::vector<std::uint64_t>& form) {
  form.push_back(text.size());
  for (std::size_t i = 0; i < text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, std::min<std::size_t>(8, text.size() - i));
    form.push_back(word);
  }
}

std::size_t structure::find_stacked(std::string_view path, std::size_t from) {
  for (std::size_t i = from; i < path.size(); ++i) {
    std::string_view rest = path.substr(i);
    if (rest.starts_with("[:]")) return i;
    if (rest.starts_with("[\"")) i = std::min(path.find("\"]", i + 2), path.size());  // any text
  }
  return path.size();
}

std::size_t structure::stacked_dimensions(std::string_view path) {
  std::size_t count = 0;
  for (std::size_t at = find_stacked(path); at < path.size(); at = find_stacked(path, at + 3))
    ++count;
  return count;
}

}  // namespace meshard

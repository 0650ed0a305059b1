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

}  // namespace meshard

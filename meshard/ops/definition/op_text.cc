// Tested in meshard/lowering/module_rules_test.cc.
#include "meshard/ops/definition/op_text.h"

#include <algorithm>
#include <charconv>

namespace meshard {

std::string_view OpText::attribute(std::initializer_list<std::string_view> names) const {
  for (std::string_view name : names)
    for (const stablehlo::ModuleAttribute& one : op.attributes)
      if (one.name == name) return module.resolve(one.value);
  return {};
}

Dimensions OpText::list(std::initializer_list<std::string_view> names) const {
  std::vector<std::int64_t> found = stablehlo::integers_of(attribute(names));
  return Dimensions(found.begin(), found.end());
}

Dimensions OpText::list_of(std::initializer_list<std::string_view> names, std::size_t count,
                           std::int64_t otherwise) const {
  Dimensions found = list(names);
  Dimensions filled;
  for (std::size_t i = 0; i < count; ++i)
    filled.push_back(found.size() == 1 ? found[0] : i < found.size() ? found[i] : otherwise);
  return filled;
}

std::int64_t OpText::number(std::initializer_list<std::string_view> names,
                            std::int64_t otherwise) const {
  Dimensions found = list(names);
  return found.empty() ? otherwise : found[0];
}

Dimensions list_in(std::string_view text, std::string_view name) {
  Dimensions out;
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    std::size_t begin = text.find('[', at), end = text.find(']', at);
    bool is_name = at == 0 || text[at - 1] == ' ' || text[at - 1] == '<' || text[at - 1] == '{';
    if (!is_name || begin == std::string_view::npos || end < begin) continue;
    std::size_t close = end;
    while (close + 1 < text.size() && text.substr(begin, 2) == "[[" && text[close + 1] != ']')
      close = std::min(text.find(']', close + 1), text.size() - 1);
    for (std::int64_t number : stablehlo::integers_of(text.substr(begin, close + 1 - begin)))
      out.push_back(number);
    return out;
  }
  return out;
}

std::int64_t number_in(std::string_view text, std::string_view name) {
  std::size_t at = text.find(name);
  if (at == std::string_view::npos) return 0;
  at = text.find_first_of("0123456789", at + name.size());
  std::int64_t number = 0;
  if (at != std::string_view::npos)
    std::from_chars(text.data() + at, text.data() + text.size(), number);
  return number;
}

void set_padding(const Dimensions& pairs, std::size_t rank, Dimensions& low, Dimensions& high) {
  low.assign(rank, pairs.size() == 1 ? pairs[0] : 0);
  high = low;
  for (std::size_t d = 0; 2 * d + 1 < pairs.size() && d < rank; ++d) {
    low[d] = pairs[2 * d];
    high[d] = pairs[2 * d + 1];
  }
}

}  // namespace meshard

// The property that fuzz programs check for every type with a text form.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace meshard {

/// Any bytes are parsed or rejected with an error, and a parsed value prints to text that parses to
/// an equal value. Otherwise, prints both texts and aborts the program.
template <class Parse>
int check_parse_print(const std::uint8_t* data, std::size_t size, Parse parse) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto first = parse(text);
  if (!first.ok()) return 0;
  const std::string printed = first->to_string();
  auto second = parse(std::string_view(printed));
  if (second.ok() && *second == *first && second->to_string() == printed) return 0;
  std::fprintf(stderr, "\"%.*s\" prints as \"%s\", which %s\n", static_cast<int>(size), text.data(),
               printed.c_str(), second.ok() ? "means something else" : second.error().what());
  std::abort();
}

}  // namespace meshard

#include "meshard/target/memory_shortage.h"

#include <charconv>

namespace meshard {
namespace {

// Parses `17.39G` and advances `text` past it.
std::optional<std::int64_t> read_amount(std::string_view& text) {
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number >= 0)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  double unit = 1;
  constexpr std::string_view kUnits = "KMGTP";
  if (!text.empty()) {
    if (std::size_t at = kUnits.find(text.front()); at != std::string_view::npos) {
      for (std::size_t i = 0; i <= at; ++i) unit *= 1024;
      text.remove_prefix(1);
    }
  }
  if (number * unit > 9e18) return std::nullopt;
  return static_cast<std::int64_t>(number * unit);
}

}  // namespace

bool says_out_of_memory(std::string_view message) {
  for (std::string_view words : {"Ran out of memory", "ran out of memory", "Out of memory",
                                 "out of memory", "RESOURCE_EXHAUSTED"})
    if (message.find(words) != std::string_view::npos) return true;
  return false;
}

std::optional<MemoryShortage> memory_shortage(std::string_view message) {
  struct Wording {
    std::string_view before, between, after;
  };
  constexpr Wording kWordings[] = {{"Used ", " of ", " hbm"},
                                   {"(", ") exceeds available HBM (", ")"},
                                   {"(", ") exceeds available hbm (", ")"}};
  for (const Wording& wording : kWordings)
    for (std::size_t at = message.find(wording.before); at != std::string_view::npos;
         at = message.find(wording.before, at + 1)) {
      std::string_view rest = message.substr(at + wording.before.size());
      auto needed = read_amount(rest);
      if (!needed || !rest.starts_with(wording.between)) continue;
      rest.remove_prefix(wording.between.size());
      auto available = read_amount(rest);
      if (available && rest.starts_with(wording.after))
        return MemoryShortage{*needed, *available,
                              message.substr(0, at).ends_with("HLO temporaries ")};
    }
  return std::nullopt;
}

std::string_view unhandled_call(const Error& error, const CallErrorText& text) {
  std::string_view message = error.message();
  std::size_t begin = message.find(text.before);
  if (begin == std::string_view::npos) return {};
  message.remove_prefix(begin + text.before.size());
  std::size_t end = message.find(text.after);
  return end == std::string_view::npos ? std::string_view() : message.substr(0, end);
}

}  // namespace meshard

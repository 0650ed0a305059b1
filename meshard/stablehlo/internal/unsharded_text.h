// The text of ops for one device.
#pragma once
#include <string>
#include <string_view>

#include "meshard/stablehlo/internal/symbol_edits.h"
#include "meshard/stablehlo/module.h"

namespace meshard::stablehlo {

/// Whether an op returns its operand, and only says how it is partitioned or where it is kept.
bool only_places(const ModuleOp& op);

/// The text of an op, and of those in its regions, without shardings, donation and locations; ops
/// that only_places() return their operand by a reshape.
std::string unsharded_text(const Module& module, const ModuleOp& op);

/// Text of ops or attributes without the locations, and without the items of dictionaries that say
/// how values are partitioned or donated. @param keep_shardings removes only donation
std::string without_placement(std::string_view text, bool keep_shardings = false);

/// Calls visit(begin, end) for each `%name` or `%name#1` of a text, outside of strings.
template <class Visit>
void for_each_reference(std::string_view text, const Visit& visit) {
  const auto is_digit = [&](std::size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
  };
  for_each_mark(text, "%", [&](std::size_t begin) {
    std::size_t end = begin + 1;
    while (end < text.size() && (is_name_char(text[end]) || text[end] == '.')) ++end;
    if (end < text.size() && text[end] == '#' && is_digit(end + 1))
      for (++end; is_digit(end);) ++end;
    visit(begin, end);
  });
}

}  // namespace meshard::stablehlo

// Parses the text of a module into ops.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "meshard/stablehlo/internal/text_cursor.h"
#include "meshard/stablehlo/module.h"

namespace meshard::stablehlo {

/// What Module holds. The views refer to `text`.
struct Module::State {
  std::string text;
  std::vector<ModuleOp> ops;
  std::vector<ModuleVariable> variables;
  std::vector<ModuleFunction> functions;
  /// By name, with the `#`.
  std::unordered_map<std::string_view, std::string_view> aliases;
};

/// Reads `{a = 1, "b" = {...}, c}`.
ModuleAttributes read_attributes(TextCursor& cursor);

/// Fills in everything but `text`. @error throws data loss
void parse_module(Module::State& state);

}  // namespace meshard::stablehlo

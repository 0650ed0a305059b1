// Tested in meshard/stablehlo/compiler_text_test.cc.
#include "meshard/stablehlo/internal/symbol_edits.h"

#include <algorithm>

#include "meshard/stablehlo/types.h"

namespace meshard::stablehlo {

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '-';
}

std::size_t skip_quoted(std::string_view text, std::size_t at) {
  if (text[at] == '"') {
    std::size_t end = at + 1;
    while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
    return std::min(end + 1, text.size());
  }
  if (text.substr(at, 2) == "//") return std::min(text.find('\n', at), text.size());
  return at;
}

TextRange visibility_range(const Module& module, const ModuleFunction& function) {
  TextRange op = module.range(function.op->text);
  std::string_view text = module.text();
  std::size_t name = text.find('@', op.begin), begin = name;
  for (std::string_view word : {"private ", "public ", "nested "})
    if (std::size_t at = text.find(word, op.begin); at < name) begin = at;
  return {begin, name};
}

void rename_symbols(const Module& module, const std::map<std::string, std::string>& names,
                    TextEdits& edits) {
  const auto rename_generic = [&](const ModuleOp& op) {
    std::string_view given = find_attribute(op.attributes, "sym_name");
    auto found = names.find(plain_text(given));
    if (!given.empty() && found != names.end())
      edits.replace(module.range(given), cat("\"", found->second, "\""));
  };
  for (const ModuleFunction& function : module.functions())
    if (function.op != nullptr && function.generic) rename_generic(*function.op);
  for_each_op(module.ops(), [&](const ModuleOp& op) {
    if (op.mnemonic == "sdy.mesh" && op.text.starts_with('"')) rename_generic(op);
  });
  std::string_view text = module.text();
  for_each_mark(text, "@", [&](std::size_t at) {
    std::size_t end = at + 1;
    std::string name;
    if (end < text.size() && text[end] == '"') {
      end = skip_quoted(text, end);
      name = plain_text(text.substr(at + 1, end - at - 1));
    } else {
      while (end < text.size() && (is_name_char(text[end]) || text[end] == '.')) ++end;
      name = text.substr(at + 1, end - at - 1);
    }
    // A custom call does not name a function of the module.
    if (text.substr(0, at).ends_with("stablehlo.custom_call ")) return;
    if (auto found = names.find(name); found != names.end() && !name.empty()) {
      std::string symbol;
      append_symbol(symbol, found->second);
      edits.replace({at, end}, std::move(symbol));
    }
  });
}

}  // namespace meshard::stablehlo

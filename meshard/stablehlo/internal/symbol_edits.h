// Edits of the names in a module's text.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/internal/text_edits.h"
#include "meshard/stablehlo/module.h"

namespace meshard::stablehlo {

/// Whether a name may have this character; dots are extra.
bool is_name_char(char c);

/// The end of what begins at `at` if that is a string or a comment; `at` otherwise.
std::size_t skip_quoted(std::string_view text, std::size_t at);

/// Calls visit(at) for each character outside of strings and comments that is one of `wanted`.
template <class Visit>
void for_each_mark(std::string_view text, std::string_view wanted, const Visit& visit) {
  for (std::size_t at = 0; at < text.size();) {
    at = text.find_first_of(cat(wanted, "\"/"), at);
    if (at == std::string_view::npos) return;
    if (std::size_t end = skip_quoted(text, at); end != at) {
      at = end;
      continue;
    }
    if (wanted.find(text[at]) != std::string_view::npos) visit(at);
    ++at;
  }
}

/// Where `private ` or `public ` is in the signature of a function that is not in generic form,
/// before its name.
TextRange visibility_range(const Module& module, const ModuleFunction& function);

/// Renames functions and meshes wherever the text names them.
/// @param names the new name of each
void rename_symbols(const Module& module, const std::map<std::string, std::string>& names,
                    TextEdits& edits);

}  // namespace meshard::stablehlo

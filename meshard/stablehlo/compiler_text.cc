#include "meshard/stablehlo/compiler_text.h"

#include <algorithm>
#include <map>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/near_names.h"
#include "meshard/stablehlo/custom_calls.h"
#include "meshard/stablehlo/internal/bytecode.h"
#include "meshard/stablehlo/internal/bytecode_values.h"
#include "meshard/stablehlo/internal/symbol_edits.h"
#include "meshard/stablehlo/module_as_text.h"

namespace meshard::stablehlo {
namespace {

// The dialects that XLA's plugins have, as far as modules use them.
constexpr std::string_view kKnownDialects[] = {
    "arith",         "builtin",   "chlo",   "complex", "func",   "linalg",    "math",
    "memref",        "mhlo",      "mpmd",   "quant",   "scf",    "sdy",       "shape",
    "sparse_tensor", "stablehlo", "tensor", "vhlo",    "affine", "ml_program"};

bool is_known_dialect(std::string_view name) {
  return std::find(std::begin(kKnownDialects), std::end(kKnownDialects), name) !=
         std::end(kKnownDialects);
}

Error parse_error(std::string_view text, std::size_t at, ErrorCode code, std::string_view what) {
  auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
  return Error(code, cat("[read_module] line ", line, ": ", what));
}

// ---- The entry.

std::string listed(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(cat("`", name, "`"));
  constexpr std::size_t kMost = 8;
  std::string more;
  if (quoted.size() > kMost) more = cat(" and ", quoted.size() - kMost, " more");
  quoted.resize(std::min(quoted.size(), kMost));
  return cat(join(quoted, ", "), more);
}

Result<const ModuleFunction*> find_entry(const Module& module, std::string_view entry) {
  auto invalid = [](std::string message) {
    return Error(ErrorCode::kInvalidArgument, std::move(message));
  };
  std::vector<std::string> all, open;
  const ModuleFunction* only = nullptr;
  for (const ModuleFunction& function : module.functions()) {
    if (function.op == nullptr || function.op->regions.empty()) continue;  // a declaration
    all.push_back(function.name);
    if (function.is_private) continue;
    open.push_back(function.name);
    only = &function;
  }
  if (all.empty()) {
    auto lines = std::count(module.text().begin(), module.text().end(), '\n') + 1;
    return Error(ErrorCode::kDataLoss, cat("[read_module] the module has no function: its ", lines,
                                           lines == 1 ? " line has" : " lines have",
                                           " no `func.func`, so there is no `main` to compile"));
  }
  if (!entry.empty()) {
    if (const ModuleFunction* named = module.function(entry)) return named;
    std::vector<std::string> near = near_names(entry, all);
    return invalid(cat("[read_module] the module has no function `", entry, "` (--entry): it has ",
                       listed(near.empty() ? all : near)));
  }
  if (const ModuleFunction* main = module.function("main")) return main;
  if (open.size() == 1) return only;
  if (open.empty() && all.size() == 1) return module.function(all[0]);
  return invalid(cat("[read_module] the module has no function `main`, and ",
                     open.empty() ? "no public function: " : "several public functions: ",
                     listed(open.empty() ? all : open), ". Choose the entry with --entry NAME"));
}

// Renames the entry to `main` wherever the text names it; another `main` gets another name.
void rename_entry(const Module& module, const ModuleFunction& entry, TextEdits& edits) {
  if (entry.name == "main" && !entry.is_private) return;
  std::map<std::string, std::string> names = {{entry.name, "main"}};
  if (entry.name != "main" && module.function("main")) {
    std::string other = "main_0";
    for (int i = 1; module.function(other); ++i) other = cat("main_", i);
    names["main"] = other;
  }
  // Before the names that follow in the text.
  for (const ModuleFunction& function : module.functions())
    if (function.op != nullptr && !function.generic &&
        (&function == &entry ? function.is_private : !function.is_private))
      edits.replace(visibility_range(module, function), &function == &entry ? "" : "private ");
  rename_symbols(module, names, edits);
}

// ---- Unknown dialects.

bool opens(char c) { return c == '{' || c == '(' || c == '[' || c == '<'; }

// True for a bracket that closes at `at`: `->` does not.
bool closes(std::string_view text, std::size_t at) {
  char c = text[at];
  return c == '}' || c == ')' || c == ']' || (c == '>' && at > 0 && text[at - 1] != '-');
}

char opening_of(char c) { return c == '}' ? '{' : c == ')' ? '(' : c == ']' ? '[' : '<'; }

// The name in `NAME = ...`, where `item` is an item of a dictionary; empty if it has no value.
std::string name_of(std::string_view item) {
  std::string name;
  for (char c : item.substr(0, item.find('='))) {
    if (c == '"' || c == ' ' || c == '\n' || c == '\t' || c == '\r') continue;
    if (!is_name_char(c) && c != '.') return {};
    name += c;
  }
  return item.find('=') == std::string_view::npos ? std::string() : name;
}

// The end of an item of a list or dictionary, of which `at` is a part outside of brackets.
std::size_t end_of_item(std::string_view text, std::size_t at) {
  for (int depth = 0; at < text.size(); ++at) {
    if (std::size_t end = skip_quoted(text, at); end != at) {
      at = end - 1;
    } else if (opens(text[at])) {
      ++depth;
    } else if ((closes(text, at) && depth-- == 0) || (text[at] == ',' && depth == 0)) {
      break;
    }
  }
  return at;
}

// Removes attributes of unknown dialects.
class UnknownDialects {
 public:
  UnknownDialects(const Module& module, TextEdits& edits)
      : text_(module.text()), edits_(edits), module_(module) {}

  Result<std::vector<std::string>> remove() {
    for (const ModuleOp& op : module_.ops()) MESHARD_RETURN_IF_ERROR(check_op(op));
    find_aliases();
    std::vector<std::size_t> marks;
    for_each_mark(text_, "#!", [&](std::size_t at) {
      if (!unknown_at(at).empty() && !in_alias_line(at)) marks.push_back(at);
    });
    if (!marks.empty()) MESHARD_RETURN_IF_ERROR(remove_items(marks));
    std::vector<std::string> notes;
    for (const auto& [dialect, count] : removed_)
      notes.push_back(cat(count, count == 1 ? " attribute" : " attributes", " of the dialect `",
                          dialect, "`, which the compiler does not support, ",
                          count == 1 ? "is" : "are", " ignored"));
    return notes;
  }

 private:
  Result<void> check_op(const ModuleOp& op) const {
    std::size_t dot = op.mnemonic.find('.');
    if (dot != std::string::npos && !is_known_dialect(std::string_view(op.mnemonic).substr(0, dot)))
      return parse_error(
          text_, module_.range(op.text).begin, ErrorCode::kUnimplemented,
          cat("the op `", op.mnemonic, "` is of the dialect `", op.mnemonic.substr(0, dot),
              "`, which the compiler does not support: convert the module to "
              "StableHLO"));
    for (const ModuleRegion& region : op.regions)
      for (const ModuleOp& inner : region.ops) MESHARD_RETURN_IF_ERROR(check_op(inner));
    return {};
  }

  // The word after `#` or `!`.
  std::string_view word_at(std::size_t at) const {
    std::size_t end = at + 1;
    while (end < text_.size() && (is_name_char(text_[end]) || text_[end] == '.')) ++end;
    return text_.substr(at + 1, end - at - 1);
  }

  // The unknown dialect that the attribute or type at `at` is of; empty if there is none.
  std::string_view unknown_at(std::size_t at) const {
    std::string_view word = word_at(at);
    if (word.empty() || (word[0] >= '0' && word[0] <= '9')) return {};
    auto alias = aliases_.find(text_.substr(at, word.size() + 1));
    if (alias != aliases_.end()) return alias->second;
    std::size_t dot = word.find('.'), end = at + 1 + word.size();
    bool opaque = end < text_.size() && text_[end] == '<';
    if (dot == std::string_view::npos && !opaque) return {};
    std::string_view dialect = word.substr(0, dot);
    return is_known_dialect(dialect) ? std::string_view() : dialect;
  }

  // What stays of a range that is removed: the other lines keep their numbers.
  std::string newlines_in(TextRange range) const {
    std::string_view part = text_.substr(range.begin, range.end - range.begin);
    return std::string(static_cast<std::size_t>(std::count(part.begin(), part.end(), '\n')), '\n');
  }

  bool in_alias_line(std::size_t at) const {
    return std::any_of(alias_lines_.begin(), alias_lines_.end(),
                       [&](const TextRange& line) { return line.begin <= at && at < line.end; });
  }

  // The lines `#alias = ...`, except those of locations.
  std::vector<TextRange> lines_of_aliases() const {
    std::vector<TextRange> lines;
    for (std::size_t at = 0; at < text_.size();) {
      std::size_t end = std::min(text_.find('\n', at), text_.size());
      bool is_alias = (text_[at] == '#' || text_[at] == '!') &&
                      !text_.substr(at).starts_with("#loc") &&
                      text_.substr(at, end - at).find(" = ") != std::string_view::npos;
      if (is_alias) lines.push_back({at, std::min(end + 1, text_.size())});
      at = end + 1;
    }
    return lines;
  }

  // Removes the aliases of unknown dialects, and those of such aliases.
  void find_aliases() {
    std::vector<TextRange> lines = lines_of_aliases();
    for (std::size_t before = lines.size() + 1; lines.size() < before;) {
      before = lines.size();
      std::erase_if(lines, [&](const TextRange& line) {
        std::string_view whole = text_.substr(line.begin, line.end - line.begin), dialect;
        std::size_t equals = whole.find(" = ");
        for_each_mark(whole.substr(equals), "#!", [&](std::size_t at) {
          if (dialect.empty()) dialect = unknown_at(line.begin + equals + at);
        });
        if (dialect.empty()) return false;
        aliases_.emplace(whole.substr(0, equals), dialect);
        edits_.replace(line, newlines_in(line));
        alias_lines_.push_back(line);
        return true;
      });
    }
  }

  // Removes the dictionaries' items in which these marks are. `marks` are sorted.
  Result<void> remove_items(const std::vector<std::size_t>& marks) {
    std::vector<std::pair<char, std::size_t>> open;  // brackets, and where their last item begins
    std::size_t next = 0;
    for (std::size_t at = 0; at < text_.size() && next < marks.size(); ++at) {
      if (at == marks[next]) {
        ++next;
        if (at >= removed_to_) MESHARD_RETURN_IF_ERROR(remove_item(at, open));
      }
      if (std::size_t end = skip_quoted(text_, at); end != at) {
        at = end - 1;
      } else if (opens(text_[at])) {
        open.emplace_back(text_[at], at + 1);
      } else if (closes(text_, at)) {
        bool matches = !open.empty() && open.back().first == opening_of(text_[at]);
        if (matches) open.pop_back();
      } else if (text_[at] == ',' && !open.empty()) {
        open.back().second = at + 1;
      }
    }
    return {};
  }

  // Removes the item of the innermost dictionary in which `at` is.
  Result<void> remove_item(std::size_t at, std::vector<std::pair<char, std::size_t>> open) {
    std::string_view dialect = unknown_at(at);
    while (!open.empty() && open.back().first != '{') open.pop_back();
    std::size_t begin = open.empty() ? at : open.back().second;
    std::string name = name_of(text_.substr(begin, at - begin));
    if (name.find('.') == std::string::npos)
      return parse_error(
          text_, at, ErrorCode::kUnimplemented,
          cat("`", text_.substr(at, 1), word_at(at), "` is of the dialect `", dialect,
              "`, which the compiler does not support, and is not an attribute that "
              "can be left out: convert the module to StableHLO"));
    std::size_t end = end_of_item(text_, text_.find('=', begin) + 1);
    // Removes one comma, too: that before it, unless this is the first that is left.
    bool after_comma = text_[begin - 1] == ',' && begin > removed_to_;
    if (after_comma)
      --begin;
    else if (end < text_.size() && text_[end] == ',')
      ++end;
    edits_.replace({begin, end}, newlines_in({begin, end}));
    removed_to_ = end;
    ++removed_[std::string(dialect)];
    return {};
  }

  std::string_view text_;
  TextEdits& edits_;
  const Module& module_;
  std::map<std::string_view, std::string_view> aliases_;  // with their mark, and the dialect
  std::vector<TextRange> alias_lines_;
  std::size_t removed_to_ = 0;
  std::map<std::string, int> removed_;  // by dialect
};

// Removes `, unreduced=max{...}` and `, unreduced=min{...}` of shardings. Versions of Shardy before
// July 2026 have only sums.
int remove_pending_extrema(std::string_view text, TextEdits& edits) {
  int count = 0;
  if (text.find("unreduced=m") == std::string_view::npos) return count;
  for_each_mark(text, ",", [&](std::size_t at) {
    std::string_view rest = text.substr(at);
    if (!rest.starts_with(", unreduced=max{") && !rest.starts_with(", unreduced=min{")) return;
    edits.replace({at, at + rest.find('}') + 1}, "");
    ++count;
  });
  return count;
}

}  // namespace

bool is_module_text(std::string_view module) {
  return !module.empty() && !Bytecode::is_bytecode(module) &&
         module.find('\0') == std::string_view::npos;
}

Result<void> check_not_hlo(std::string_view bytes) {
  std::size_t begin = bytes.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || !bytes.substr(begin).starts_with("HloModule ")) return {};
  return Error(
      ErrorCode::kInvalidArgument,
      "[read_module] this is the text of an HLO module, which a compiler has made already: "
      "pass the StableHLO from which it was made (in JAX `lowered.as_text()` or the "
      "Lowered itself, not `compiled.as_text()`)");
}

Result<CompilerText> text_for_compiler(std::string_view text, std::string_view entry) {
  MESHARD_RETURN_IF_ERROR(check_not_hlo(text));
  MESHARD_ASSIGN_OR_RETURN(Module module, Module::parse(std::string(text)));
  MESHARD_ASSIGN_OR_RETURN(const ModuleFunction* function, find_entry(module, entry));
  TextEdits edits(module.text());
  rename_entry(module, *function, edits);
  CompilerText made;
  MESHARD_ASSIGN_OR_RETURN(made.notes, UnknownDialects(module, edits).remove());
  if (int count = remove_pending_extrema(module.text(), edits))
    made.notes.push_back(cat(count, count == 1 ? " sharding is" : " shardings are",
                             " unreduced by a maximum or a minimum, which the compiler does not "
                             "have: the value is reduced where it is marked"));
  if (function->name != "main")
    made.notes.push_back(cat("the program is the function `", function->name, "` of the module"));
  made.text = edits.empty() ? std::string(text) : edits.apply();
  return made;
}

Result<CompilerText> bytecode_for_compiler(std::string bytecode) {
  CompilerText made{std::move(bytecode)};
  if (!Bytecode::is_bytecode(made.text)) return made;
  MESHARD_ASSIGN_OR_RETURN(bool names,
                           caught([&] { return names_reductions(Bytecode(made.text)); }));
  if (names) {
    MESHARD_ASSIGN_OR_RETURN(made.text, module_as_text(made.text));
    return text_for_compiler(made.text);
  }
  MESHARD_ASSIGN_OR_RETURN(made.text, with_older_calls(std::move(made.text)));
  return made;
}

}  // namespace meshard::stablehlo

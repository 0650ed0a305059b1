#include "meshard/stablehlo/merged_module.h"

#include <set>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/internal/symbol_edits.h"
#include "meshard/stablehlo/internal/text_edits.h"
#include "meshard/stablehlo/module.h"

namespace meshard::stablehlo {
namespace {

class ModuleMerger {
 public:
  ModuleMerger(const Module& module, std::string_view prefix,
               const std::map<std::string, std::string>& meshes)
      : module_(module), edits_(module.text()), prefix_(prefix), meshes_(meshes) {}

  Result<MergedModule> run() {
    const ModuleFunction* main = module_.function("main");
    if (main == nullptr || main->op == nullptr)
      return Error(ErrorCode::kDataLoss, "[read_module] the module has no function `main`");
    find_names();
    for (const ModuleFunction& function : module_.functions())
      if (function.op != nullptr) make_private(function);
    remove_attributes(*main);
    rename_symbols(module_, names_, edits_);
    find_aliases();
    rename_aliases();
    MergedModule merged{names_["main"], {}, {}};
    for (const ModuleOp* op : kept_)
      append(merged.functions, cat("  ", edits_.apply(module_.range(op->text)), "\n"));
    for (const TextRange& line : alias_lines_)
      append(merged.aliases, cat(edits_.apply(line), "\n"));
    return merged;
  }

 private:
  void find_names() {
    for_each_op(module_.ops(), [&](const ModuleOp& op) {
      const bool is_function = op.mnemonic == "func.func", is_mesh = op.mnemonic == "sdy.mesh";
      if (!is_function && !is_mesh) return;
      std::string name =
          op.symbol.empty() ? plain_text(find_attribute(op.attributes, "sym_name")) : op.symbol;
      auto known = meshes_.find(name);
      if (is_mesh && known != meshes_.end()) {
        names_[name] = known->second;
      } else {
        names_[name] = cat(prefix_, ".", name);
        kept_.push_back(&op);
      }
    });
  }

  void make_private(const ModuleFunction& function) {
    if (!function.generic) {
      edits_.replace(visibility_range(module_, function), "private ");
      return;
    }
    std::string_view visibility = find_attribute(function.op->attributes, "sym_visibility");
    if (!visibility.empty()) {
      edits_.replace(module_.range(visibility), "\"private\"");
      return;
    }
    std::size_t open = function.op->text.find('{');
    if (open == std::string_view::npos) return;
    std::size_t at = module_.range(function.op->text).begin + open + 1;
    edits_.replace({at, at}, "sym_visibility = \"private\", ");
  }

  // Shardings and donation are those of the call.
  void remove_attributes(const ModuleFunction& function) {
    for (const auto* boundary : {&function.arguments, &function.results})
      for (const ModuleBoundary& value : *boundary)
        if (!value.dictionary.empty())
          edits_.replace(module_.range(value.dictionary), function.generic ? "{}" : "");
  }

  // The lines `#name = ...` and `!name = ...` outside of the module's op.
  void find_aliases() {
    std::string_view text = module_.text();
    std::size_t begin = 0;
    for (const ModuleOp& op : module_.ops()) {
      TextRange range = module_.range(op.text);
      find_aliases({begin, range.begin});
      begin = range.end;
    }
    find_aliases({begin, text.size()});
  }

  void find_aliases(TextRange between) {
    std::string_view text = module_.text();
    while (between.begin < between.end) {
      std::size_t end = std::min(text.find('\n', between.begin), between.end);
      std::string_view line = text.substr(between.begin, end - between.begin);
      std::size_t equals = line.find(" = ");
      if ((line.starts_with('#') || line.starts_with('!')) && equals != std::string_view::npos) {
        aliases_.insert(line.substr(0, equals));
        alias_lines_.push_back({between.begin, end});
      }
      between.begin = end + 1;
    }
  }

  void rename_aliases() {
    std::string_view text = module_.text();
    for_each_mark(text, "#!", [&](std::size_t at) {
      std::size_t end = at + 1;
      while (end < text.size() && is_name_char(text[end])) ++end;
      if (aliases_.contains(text.substr(at, end - at)))
        edits_.replace({at + 1, at + 1}, cat(prefix_, "_"));
    });
  }

  const Module& module_;
  TextEdits edits_;
  std::string_view prefix_;
  const std::map<std::string, std::string>& meshes_;
  std::map<std::string, std::string> names_;
  std::vector<const ModuleOp*> kept_;
  std::set<std::string_view> aliases_;
  std::vector<TextRange> alias_lines_;
};

}  // namespace

Result<MergedModule> merge_module(std::string_view text, std::string_view prefix,
                                  const std::map<std::string, std::string>& meshes) {
  MESHARD_ASSIGN_OR_RETURN(Module module, Module::parse(std::string(text)));
  return ModuleMerger(module, prefix, meshes).run();
}

}  // namespace meshard::stablehlo

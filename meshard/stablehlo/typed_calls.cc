#include "meshard/stablehlo/typed_calls.h"

#include <utility>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/module.h"

namespace meshard::stablehlo {
namespace {

constexpr std::string_view kTyped = "4 : i32";

// Replaces what a call says of its interface; `edits` are in the order of the text.
void make_typed(const Module& module, const ModuleOp& call,
                std::vector<std::pair<TextRange, std::string>>& edits) {
  bool has_version = false;
  std::vector<std::pair<TextRange, std::string>> own;
  for (const ModuleAttribute& attribute : call.attributes) {
    if (attribute.name == "api_version") {
      has_version = true;
      own.emplace_back(module.range(attribute.value), kTyped);
    } else if (attribute.name == "backend_config") {
      own.emplace_back(module.range(attribute.value), "{}");
    }
  }
  if (!has_version) {
    // The attributes come after the operands.
    std::size_t begin = module.range(call.text).begin;
    std::size_t after = call.text.find(')', call.text.find('('));
    if (after == std::string_view::npos) return;
    std::size_t open = call.text.find_first_not_of(" <", after + 1);
    bool has_attributes = open != std::string_view::npos && call.text[open] == '{';
    std::size_t at = begin + (has_attributes ? open + 1 : after + 1);
    bool first = call.attributes.empty();
    edits.push_back({{at, at},
                     has_attributes ? cat("api_version = ", kTyped, first ? "" : ", ")
                                    : cat(" {api_version = ", kTyped, "}")});
  }
  edits.insert(edits.end(), own.begin(), own.end());
}

}  // namespace

Result<std::string> with_typed_calls(std::string_view text, std::string_view target) {
  MESHARD_ASSIGN_OR_RETURN(Module module, Module::parse(std::string(text)));
  std::vector<std::pair<TextRange, std::string>> edits;
  for_each_op(module.ops(), [&](const ModuleOp& op) {
    if (op.mnemonic != "stablehlo.custom_call") return;
    std::string called = op.symbol.empty()
                             ? plain_text(find_attribute(op.attributes, "call_target_name"))
                             : op.symbol;
    if (called == target) make_typed(module, op, edits);
  });
  std::string made;
  std::size_t done = 0;
  for (const auto& [range, by] : edits) {
    append(made, cat(text.substr(done, range.begin - done), by));
    done = range.end;
  }
  append(made, text.substr(done));
  return made;
}

}  // namespace meshard::stablehlo

#include "meshard/stablehlo/argument_shardings.h"

#include "meshard/base/cat.h"
#include "meshard/stablehlo/internal/text_edits.h"
#include "meshard/stablehlo/module.h"

namespace meshard::stablehlo {
namespace {

constexpr std::string_view kReplaced[] = {"sdy.sharding", "mhlo.sharding", "tf.aliasing_output"};

// The dictionary of an argument with this sharding.
std::string dictionary_with(const ModuleBoundary& argument, std::string_view sharding) {
  std::string out = cat("{sdy.sharding = ", sharding);
  for (const ModuleAttribute& attribute : argument.attributes) {
    bool is_replaced = false;
    for (std::string_view name : kReplaced) is_replaced = is_replaced || attribute.name == name;
    if (attribute.name == "tf.aliasing_output") out += ", jax.buffer_donor = true";
    if (is_replaced) continue;
    append(out, cat(", ", attribute.name));
    if (!attribute.value.empty()) append(out, cat(" = ", attribute.value));
  }
  return out + "}";
}

}  // namespace

Result<std::string> with_argument_shardings(std::string_view text,
                                            const std::map<std::size_t, std::string>& shardings,
                                            std::string_view meshes) {
  MESHARD_ASSIGN_OR_RETURN(Module module, Module::parse(std::string(text)));
  const ModuleFunction* main = module.function("main");
  if (main == nullptr || main->op == nullptr || main->generic ||
      (!shardings.empty() && shardings.rbegin()->first >= main->arguments.size()))
    return Error(ErrorCode::kDataLoss,
                 "[read_module] the module has no function `main` with these arguments in its "
                 "short form");
  TextEdits edits(module.text());
  for (const auto& [i, sharding] : shardings) {
    const ModuleBoundary& argument = main->arguments[i];
    std::string dictionary = dictionary_with(argument, sharding);
    if (!argument.dictionary.empty()) {
      edits.replace(module.range(argument.dictionary), std::move(dictionary));
    } else {
      std::size_t end = module.range(argument.type).end;
      edits.replace({end, end}, cat(" ", dictionary));
    }
  }
  if (!meshes.empty()) {
    std::size_t begin = module.range(main->op->text).begin;
    edits.replace({begin, begin}, cat(meshes, "\n  "));
  }
  return edits.apply();
}

}  // namespace meshard::stablehlo

#include "tools/reference/op_page.h"

#include <algorithm>
#include <set>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/graph/graph_text.h"
#include "meshard/lowering/lower.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/op_table.h"
#include "tools/reference/declaration.h"
#include "tools/reference/op_example.h"

namespace meshard::tool {
namespace {

constexpr std::string_view kComposites = "meshard/ops/composite/";
constexpr std::string_view kSource =
    "\n<!-- Written by `./dev docs` from the definitions of the ops and their headers; edit those. "
    "-->\n";
constexpr std::string_view kDimensionNumbers = "meshard/stablehlo/types.h";

std::string block(std::string_view language, std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  return cat("```", language, "\n", text, "\n```\n");
}

// Each comment as prose, and below it the declarations that share it; with a heading, such as
// `###`, before each, which names the first of them.
std::string documented(const std::vector<const Declaration*>& declarations,
                       std::string_view heading = {}, bool with_errors = true) {
  std::string out;
  for (std::size_t first = 0; first < declarations.size();) {
    const Declaration& head = *declarations[first];
    std::string text;
    for (; first < declarations.size() && declarations[first]->comment == head.comment; ++first)
      text += cat(declarations[first]->text, "\n");
    if (!out.empty()) out += '\n';
    if (!heading.empty()) out += cat(heading, " ", head.name, "\n\n");
    if (!head.prose.empty()) out += cat(head.prose, "\n\n");
    out += block("cpp", text);
    if (with_errors && !head.errors.empty()) out += cat("\nErrors: ", head.errors, "\n");
  }
  return out;
}

// The errors of all functions of an op, each once.
std::string errors_of(const std::vector<const Declaration*>& functions) {
  std::string out;
  std::set<std::string_view> seen;
  for (const Declaration* function : functions)
    if (!function->errors.empty() && seen.insert(function->errors).second)
      out += cat(out.empty() ? "" : " ", function->errors);
  return out;
}

std::vector<const Declaration*> functions_named(std::string_view name) {
  std::vector<const Declaration*> found;
  for (const Declaration& declaration : all_declarations())
    if (declaration.name == name && declaration.kind == DeclarationKind::kFunction)
      found.push_back(&declaration);
  return found;
}

// Ends at a period outside of parentheses and code, before a space.
std::string first_sentence(std::string_view text) {
  int depth = 0;
  bool code = false;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '`') code = !code;
    if (code) continue;
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] == '.' && text[i + 1] == ' ' && depth == 0)
      return std::string(text.substr(0, i + 1));
  }
  return std::string(text);
}

// Text in one line.
std::string one_line(std::string_view text) {
  std::string out(text);
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

// What the op computes, in one sentence: from its definition, else from its function's comment.
std::string summary(const OpDef& op) {
  if (!op.doc.empty()) return first_sentence(op.doc);
  for (const Declaration* function : functions_named(op.name))
    if (!function->prose.empty()) return first_sentence(one_line(function->prose));
  throw InternalError(cat("no header describes ", op.name));
}

// The types of the same header, and the dimension numbers, that the declarations mention.
std::vector<const Declaration*> types_of(const std::vector<const Declaration*>& functions) {
  std::vector<const Declaration*> found;
  for (const Declaration& type : all_declarations()) {
    if (type.kind != DeclarationKind::kType) continue;
    auto mentions = [&](const Declaration* function) {
      return (function->header == type.header || type.header == kDimensionNumbers) &&
             function->text.find(type.name) != std::string_view::npos;
    };
    if (std::any_of(functions.begin(), functions.end(), mentions)) found.push_back(&type);
  }
  return found;
}

std::string derivative(const OpDef& op, const Node& node) {
  if (op.vjp == element_wise::zero_vjp) return "zero everywhere";
  if (op.vjp) return "yes";
  return is_floating(node.type().dtype) ? "none" : "none: the result is not a float";
}

std::string attributes(const Node& node) {
  if (!node.attributes()) return "none";
  std::string text;
  node.attributes()->print(text);
  return cat("in the example `", text, "`");
}

std::string sharding_rule(const Node& node) {
  OpCall call{.op = node.op(), .attributes = node.attributes()};
  for (const Value& operand : node.operands()) call.operands.push_back(&operand.type());
  for (std::uint32_t i = 0; i < node.num_outputs(); ++i) call.results.push_back(&node.type(i));
  return node.op().sharding_rule(call).to_string();
}

// The body of the module's function, without locations and indentation.
std::string stablehlo_lines(const Graph& graph) {
  Program program;
  program.graph = graph;
  std::string module = lower(program).text, out;
  for (std::size_t at = module.find('\n', module.find("func.func")) + 1; at < module.size();) {
    std::size_t end = module.find('\n', at);
    std::string line = module.substr(at, end - at);
    at = end + 1;
    if (line == "  }") break;
    if (std::size_t location = line.find(" loc("); location != std::string::npos)
      line.erase(location);
    line.erase(0, std::min<std::size_t>(4, line.find_first_not_of(' ')));
    if (!out.empty()) out += '\n';
    out += line;
  }
  return out;
}

bool is_composite(const Declaration& declaration) {
  return declaration.header.starts_with(kComposites) &&
         declaration.kind == DeclarationKind::kFunction;
}

}  // namespace

std::string op_page(const OpDef& op) {
  Graph graph = record_example(op);
  const Node& node = example_node(op, graph);
  std::vector<const Declaration*> functions = functions_named(op.name), types = types_of(functions);
  if (functions.empty()) throw InternalError(cat("no public header declares ", op.name));
  std::string out = cat("# ", op.name, "\n\n");
  if (!op.doc.empty()) out += cat(op.doc, "\n\n");
  out += documented(functions, {}, /*with_errors=*/false);
  if (!types.empty()) out += "\n" + documented(types);
  out += cat("\n`#include \"", functions[0]->header, "\"`, or `<meshard/meshard.h>`\n\n");
  out += cat("- operands: ", op.operands.empty() ? "none" : cat("`", op.operands, "`"), "\n");
  out += cat("- attributes: ", attributes(node), "\n");
  out += cat("- derivative: ", derivative(op, node), "\n");
  if (std::string errors = errors_of(functions); !errors.empty())
    out += cat("- errors: ", one_line(errors), "\n");
  out += "\n## Example\n\n";
  out += cat("With `x` and `y` of type `f32[2,3]`,\n\n", block("cpp", op.example));
  out += cat("\nis recorded as\n\n", block("text", to_string(graph)));
  out += cat("\nand reaches the compiler as\n\n", block("mlir", stablehlo_lines(graph)));
  out += cat("\nHow its dimensions correspond (the sharding rule):\n\n",
             block("text", sharding_rule(node)));
  return out;
}

std::string declaration_page(std::string_view name) {
  std::vector<const Declaration*> found;
  for (const Declaration& declaration : all_declarations())
    if (declaration.name == name) found.push_back(&declaration);
  if (found.empty()) return {};
  std::string out = cat("# ", name, "\n\n", documented(found));
  if (found[0]->kind == DeclarationKind::kFunction)
    if (auto types = types_of(found); !types.empty()) out += "\n" + documented(types);
  return out + cat("\n`#include \"", found[0]->header, "\"`, or `<meshard/meshard.h>`\n");
}

std::string composites_page() {
  std::string out =
      "# Composites\n\n"
      "Functions made of [primitives](README.md). They have no definition of their own: "
      "derivative, sharding and\nStableHLO are those of the primitives that they record. The "
      "declarations are from "
      "their headers under `meshard/ops/composite/`.\n";
  auto all = all_declarations();
  for (std::size_t first = 0; first < all.size();) {
    std::size_t last = first;
    std::vector<const Declaration*> here;
    while (last < all.size() && all[last].header == all[first].header) here.push_back(&all[last++]);
    std::string_view header = all[first].header, title = all[first].title;
    first = last;
    if (!header.starts_with(kComposites)) continue;
    std::string_view file = header.substr(kComposites.size());
    out += cat("\n## ", file.substr(0, file.find('.')), "\n\n");
    if (!title.empty()) out += cat(first_sentence(title), "\n\n");
    out += documented(here, "###");
  }
  return out += kSource;
}

std::string index_page() {
  std::string out =
      "# Reference\n\n"
      "Each primitive has a page; functions made of primitives are on [one page](composites.md). "
      "`meshard op NAME`\nprints the same.\n\n| primitive | |\n|---|---|\n";
  for (const OpDef* op : all_ops())
    out += cat("| [", op->name, "](", op->name, ".md) | ", summary(*op), " |\n");
  return out += kSource;
}

std::string list_of_names() {
  std::string primitives;
  for (const OpDef* op : all_ops()) primitives += cat("  ", op->name);
  std::set<std::string_view> names;
  for (const Declaration& declaration : all_declarations())
    if (is_composite(declaration)) names.insert(declaration.name);
  std::string rest;
  for (std::string_view name : names) rest += cat("  ", name);
  return cat("primitives:", primitives, "\n\ncomposites:", rest, "\n");
}

}  // namespace meshard::tool

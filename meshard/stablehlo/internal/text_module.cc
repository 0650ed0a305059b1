// Tested in meshard/stablehlo/module_reader_test.cc.
#include <algorithm>

#include "meshard/stablehlo/internal/module_facts.h"
#include "meshard/stablehlo/internal/module_parser.h"
#include "meshard/stablehlo/module.h"

namespace meshard::stablehlo {
namespace {

class FactsReader {
 public:
  explicit FactsReader(const Module& module) : module_(module) {}

  ModuleFacts read() {
    for_each_op(module_.ops(), [&](const ModuleOp& op) {
      if (op.mnemonic == "builtin.module") read_module(op);
      if (op.mnemonic == "sdy.mesh") read_mesh(op);
      read_names(op);
    });
    const ModuleFunction* main = module_.function("main");
    if (!main) {
      TextCursor end(module_.text());
      end.jump(module_.text().size());
      end.fail("there is no function `main`");
    }
    for (const ModuleBoundary& argument : main->arguments) {
      facts_.arguments.push_back(value_of(argument));
      std::string name = module_.location_name(argument.location);
      if (!name.empty()) facts_.arguments.back().name = std::move(name);
    }
    for (const ModuleBoundary& result : main->results) facts_.results.push_back(value_of(result));
    return std::move(facts_);
  }

 private:
  static std::string_view attribute_in(std::string_view dictionary, std::string_view name) {
    TextCursor cursor(dictionary);
    return find_attribute(read_attributes(cursor), name);
  }

  void read_module(const ModuleOp& op) {
    if (!op.symbol.empty()) facts_.name = op.symbol;
    for (const auto& [name, value] : op.attributes) {
      if (name == "sym_name") facts_.name = plain_text(value);
      if (name == "mhlo.num_partitions") facts_.num_partitions = TextCursor(value).integer();
      if (name == "mhlo.num_replicas") facts_.num_replicas = TextCursor(value).integer();
      if (name == "mhlo.frontend_attributes") {
        std::string meshes = plain_text(attribute_in(module_.resolve(value), kFrontendMeshes));
        if (!meshes.empty()) add_frontend_meshes(meshes, facts_);
      }
      set_module_attribute(name, plain_text(value), facts_);
    }
  }

  void read_names(const ModuleOp& op) {
    std::string name = op.mnemonic.substr(op.mnemonic.find('.') + 1);
    if (name == "custom_call" && !op.symbol.empty()) name = op.symbol;
    ModuleOpNames& names = facts_.op_names;
    if (is_collective_op(name)) {
      names.has_collectives = true;
      std::string own = module_.location_name(op.location);
      if (!own.empty()) names.collectives.insert(std::move(own));
    }
    if (!op.location.empty() || op.mnemonic == "builtin.module" || op.mnemonic == "func.func")
      return;
    // The place of an op is that of its name, after its results.
    std::size_t at = module_.range(op.text).begin;
    if (op.text.starts_with('%')) at += std::min(op.text.find('='), op.text.size());
    names.by_line.emplace(line_of(at), std::move(name));
  }

  // The ops are read in the order of the text.
  std::int64_t line_of(std::size_t at) {
    std::string_view text = module_.text();
    while (counted_ < at && counted_ < text.size()) line_ += text[counted_++] == '\n';
    return line_;
  }

  void read_mesh(const ModuleOp& op) {
    std::string name = op.symbol;
    std::string_view mesh;
    for (const ModuleAttribute& attribute : op.attributes) {
      if (attribute.name == "sym_name") name = plain_text(attribute.value);
      if (attribute.name.empty() || attribute.name == "mesh")
        mesh = module_.resolve(attribute.value);
    }
    std::size_t begin = mesh.find('<');
    if (begin == std::string_view::npos) {
      TextCursor at(module_.text());
      at.jump(module_.range(op.text).begin);
      at.fail("a mesh has no axes");
    }
    facts_.meshes.push_back(parse_module_mesh(name, mesh.substr(begin)));
    facts_.uses_shardy = true;
  }

  ModuleValue value_of(const ModuleBoundary& boundary) {
    ModuleValue value{.name = {}, .type = std::string(boundary.type), .sharding = {}};
    for (const auto& [name, text] : boundary.attributes) {
      if (name == "mhlo.frontend_attributes") {
        std::string sharding = plain_text(attribute_in(module_.resolve(text), kFrontendSharding));
        std::erase(sharding, '\\');
        if (!sharding.empty()) set_boundary_attribute("sdy.sharding", sharding, value, facts_);
        continue;
      }
      set_boundary_attribute(name, plain_text(module_.resolve(text)), value, facts_);
    }
    return value;
  }

  const Module& module_;
  ModuleFacts facts_;
  std::size_t counted_ = 0;  // up to here, the lines are counted
  std::int64_t line_ = 1;
};

}  // namespace

ModuleFacts read_text_module(std::string_view text) {
  return FactsReader(Module::parse(std::string(text)).value()).read();
}

}  // namespace meshard::stablehlo

// Tested in meshard/stablehlo/module_reader_test.cc.
#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/internal/bytecode_values.h"
#include "meshard/stablehlo/internal/module_facts.h"

namespace meshard::stablehlo {
namespace {

// An operation with its attributes.
struct Op : BytecodeOp {
  BytecodeValues::Dictionary dictionary;
};

class BytecodeModuleReader {
 public:
  explicit BytecodeModuleReader(const Bytecode& bytecode)
      : bytecode_(bytecode), values_(bytecode) {}

  ModuleFacts read() {
    facts_.form = ModuleForm::kBytecode;
    ByteCursor cursor(bytecode_.operations());
    std::size_t ops = block_begin(cursor);
    for (std::size_t i = 0; i < ops; ++i) {
      Op op = read_op(cursor);
      if (op.name != "builtin.module")
        fail_bytecode(cat("`", op.name, "` appears outside a module"));
      read_module(op, cursor);
    }
    if (!found_main_)
      fail_bytecode(cat("there is no function `main`",
                        functions_.empty() ? "" : cat(", but ", join(functions_, ", ")),
                        functions_.empty() ? ""
                                           : ": call it `main`, or write the module as text, "
                                             "whose entry may have any name"));
    for (std::string_view name : bytecode_.op_names()) {
      name.remove_prefix(std::min(name.find('.') + 1, name.size()));
      if (std::size_t version = name.rfind("_v");
          version != std::string_view::npos &&
          name.find_first_not_of("0123456789", version + 2) == std::string_view::npos)
        name = name.substr(0, version);
      if (is_collective_op(name)) facts_.op_names.has_collectives = true;
    }
    return std::move(facts_);
  }

 private:
  // Reads the head of a block: returns the number of operations and stores the arguments' names.
  std::size_t block_begin(ByteCursor& cursor) {
    std::vector<BytecodeArgument> arguments;
    std::size_t ops = bytecode_.read_block(cursor, arguments);
    block_arguments_.clear();
    for (const BytecodeArgument& argument : arguments)
      block_arguments_.push_back(argument.location ? values_.location_name(*argument.location)
                                                   : std::string());
    return ops;
  }

  Op read_op(ByteCursor& cursor) {
    Op op{bytecode_.read_op(cursor), {}};
    if (op.attributes) op.dictionary = values_.dictionary(*op.attributes);
    if (op.regions > 1 || (op.regions == 1 && !op.isolated))
      fail_bytecode(cat("`", op.name, "` has other regions than a module or a function"));
    return op;
  }

  // The first block of an operation's only region; nullopt if there is none.
  static std::optional<ByteCursor> region(const Op& op, ByteCursor& cursor) {
    if (op.regions == 0) return std::nullopt;
    ByteCursor inner(read_nested_section(cursor));
    if (inner.number() == 0) return std::nullopt;  // the number of blocks
    inner.number();                                // the number of values
    return inner;
  }

  void read_module(const Op& op, ByteCursor& cursor) {
    std::optional<ByteCursor> body = region(op, cursor);
    if (!op.properties.empty()) {
      ByteCursor properties(op.properties);
      std::uint64_t name = properties.number();  // sym_name, if there is one
      if (name & 1) facts_.name = values_.text(name >> 1);
    }
    for (const auto& [name, value] : op.dictionary) {
      if (name == "sym_name") facts_.name = values_.text(value);
      if (name == "mhlo.num_partitions") facts_.num_partitions = values_.integer(value);
      if (name == "mhlo.num_replicas") facts_.num_replicas = values_.integer(value).value_or(1);
      if (name == "mhlo.frontend_attributes")
        for (const auto& [key, text] : values_.dictionary(value))
          if (key == kFrontendMeshes) add_frontend_meshes(values_.text(text), facts_);
      if (name.starts_with("jax.") || name == kDeviceMesh)
        set_module_attribute(name, values_.text(value), facts_);
    }
    if (!body) return;
    std::size_t ops = block_begin(*body);
    for (std::size_t i = 0; i < ops; ++i) {
      Op inner = read_op(*body);
      if (inner.name == "sdy.mesh") read_mesh(inner);
      std::optional<ByteCursor> block = region(inner, *body);
      if (inner.name == "func.func" || inner.name == "vhlo.func_v1") read_function(inner, block);
    }
  }

  void read_mesh(const Op& op) {
    std::uint64_t mesh = 0, name = 0;
    if (!op.properties.empty()) {
      ByteCursor properties(op.properties);
      mesh = properties.number();
      name = properties.number();
    } else {
      mesh = named(op, "mesh");
      name = named(op, "sym_name");
    }
    facts_.uses_shardy = true;
    facts_.meshes.push_back(values_.mesh(values_.text(name), mesh));
  }

  static std::uint64_t named(const Op& op, std::string_view name) {
    for (const auto& [key, value] : op.dictionary)
      if (key == name) return value;
    fail_bytecode(cat("`", op.name, "` has no ", name));
  }

  // Properties are stored in order of name: arg_attrs, function_type, no_inline, res_attrs,
  // sym_name, ... In func.func, all but the type and the name are optional; the lowest bit of their
  // numbers indicates whether they are present. In vhlo all are present, and there is no no_inline.
  void read_function(const Op& op, std::optional<ByteCursor>& block) {
    std::optional<std::uint64_t> argument_attributes, result_attributes;
    std::uint64_t type = 0, name = 0;
    if (op.properties.empty()) {
      type = named(op, "function_type");
      name = named(op, "sym_name");
      for (const auto& [key, value] : op.dictionary) {
        if (key == "arg_attrs") argument_attributes = value;
        if (key == "res_attrs") result_attributes = value;
      }
    } else {
      ByteCursor properties(op.properties);
      const bool optional = op.name == "func.func";
      const auto maybe = [&]() -> std::optional<std::uint64_t> {
        std::uint64_t value = properties.number();
        if (!optional) return value;
        return value & 1 ? std::optional(value >> 1) : std::nullopt;
      };
      argument_attributes = maybe();
      type = properties.number();
      if (optional) properties.number();  // no_inline
      result_attributes = maybe();
      name = properties.number();
    }
    if (values_.text(name) != "main") {
      if (functions_.size() < kMostNamed) functions_.push_back(cat("`", values_.text(name), "`"));
      return;
    }
    found_main_ = true;
    if (block)
      block_begin(*block);
    else
      block_arguments_.clear();
    auto [inputs, outputs] = values_.function_type(type);
    facts_.arguments = boundary(inputs, argument_attributes);
    facts_.results = boundary(outputs, result_attributes);
    if (block_arguments_.size() == facts_.arguments.size())
      for (std::size_t i = 0; i < block_arguments_.size(); ++i)
        if (!block_arguments_[i].empty()) facts_.arguments[i].name = block_arguments_[i];
  }

  std::vector<ModuleValue> boundary(const std::vector<std::uint64_t>& types,
                                    std::optional<std::uint64_t> attributes) {
    std::vector<std::uint64_t> lists;
    if (attributes) lists = values_.array(*attributes);
    std::vector<ModuleValue> values;
    for (std::size_t i = 0; i < types.size(); ++i) {
      ModuleValue value;
      value.type = values_.type_text(types[i]);
      if (i < lists.size())
        for (const auto& [name, attribute] : values_.dictionary(lists[i]))
          read_attribute(name, attribute, value);
      values.push_back(std::move(value));
    }
    return values;
  }

  void read_attribute(std::string_view name, std::uint64_t attribute, ModuleValue& value) {
    if (name == "mhlo.frontend_attributes") {
      for (const auto& [key, text] : values_.dictionary(attribute))
        if (key == kFrontendSharding)
          set_boundary_attribute("sdy.sharding", values_.text(text), value, facts_);
      return;
    }
    std::string text =
        name == "sdy.sharding" ? values_.sharding_text(attribute) : values_.text(attribute);
    if (name == "jax.buffer_donor" && values_.integer(attribute).value_or(0) == 0) return;  // false
    set_boundary_attribute(name, text, value, facts_);
  }

  const Bytecode& bytecode_;
  BytecodeValues values_;
  ModuleFacts facts_;
  std::vector<std::string> block_arguments_;  // their names
  bool found_main_ = false;
  std::vector<std::string> functions_;  // the names of the others
  static constexpr std::size_t kMostNamed = 8;
};

}  // namespace

ModuleFacts read_bytecode_module(std::string_view bytes) {
  Bytecode bytecode(bytes);
  return BytecodeModuleReader(bytecode).read();
}

}  // namespace meshard::stablehlo

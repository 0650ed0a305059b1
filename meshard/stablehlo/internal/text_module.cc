// Tested in meshard/stablehlo/module_reader_test.cc.
#include "meshard/stablehlo/internal/text_module.h"

#include <charconv>
#include <unordered_map>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/internal/boundary_attributes.h"
#include "meshard/stablehlo/internal/text_cursor.h"

namespace meshard::stablehlo {
namespace {

using Attributes = std::vector<std::pair<std::string, std::string_view>>;

// Reads `{a = 1, "b" = {...}, c}`. Values are views of the text.
Attributes read_attributes(TextCursor& cursor) {
  Attributes found;
  cursor.expect("{");
  while (!cursor.accept("}")) {
    std::string name = cursor.peek_quoted() ? cursor.quoted() : std::string(cursor.word());
    if (name.empty()) cursor.fail("expected the name of an attribute");
    found.emplace_back(std::move(name), cursor.accept("=") ? cursor.value() : std::string_view());
    if (!cursor.accept(",") && !cursor.peek("}")) cursor.fail("expected `,` or `}`");
  }
  return found;
}

std::string_view find_attribute(const Attributes& attributes, std::string_view name) {
  for (const auto& [key, value] : attributes)
    if (key == name) return value;
  return {};
}

// The value of a string attribute; the text of any other.
std::string plain(std::string_view value) {
  if (!value.starts_with('"')) return std::string(value);
  TextCursor cursor(value);
  return cursor.quoted();
}

class TextModuleReader {
 public:
  explicit TextModuleReader(std::string_view text) : cursor_(text) {}

  ModuleFacts read() {
    read_location_names();
    cursor_.jump(0);
    read_body(/*inside=*/false);
    if (!found_main_) cursor_.fail("there is no function `main`");
    for (std::size_t i = 0; i < facts_.arguments.size() && i < places_.size(); ++i)
      if (std::string name = location_name(places_[i]); !name.empty())
        facts_.arguments[i].name = std::move(name);
    return std::move(facts_);
  }

 private:
  // Reads `#loc3 = loc("name"(#loc1))` and other aliases, which may come before or after the
  // module.
  void read_location_names() {
    while (!cursor_.at_end()) {
      if (!cursor_.peek("#")) {
        if (is_opening(cursor_.text()[cursor_.position()])) {
          cursor_.balanced();
        } else {
          cursor_.token();
        }
        continue;
      }
      std::string_view alias = cursor_.word();
      if (!cursor_.accept("=")) {
        if (alias.empty()) cursor_.token();
        continue;
      }
      // An alias ends at the end of its line.
      std::size_t end =
          std::min(cursor_.text().find('\n', cursor_.position()), cursor_.text().size());
      aliases_.emplace(alias, cursor_.text().substr(cursor_.position(), end - cursor_.position()));
      cursor_.jump(end);
    }
  }
  static bool is_opening(char c) { return c == '(' || c == '[' || c == '{' || c == '<'; }

  std::string location_name(std::string_view location) {
    for (int hops = 0; hops < 4; ++hops) {
      TextCursor cursor(location);
      if (!cursor.accept("loc(")) return {};
      if (cursor.peek_quoted()) {
        std::string name = cursor.quoted();
        // `"file":3:4` is a file location, not a name.
        return cursor.peek(":") ? std::string() : name;
      }
      auto alias = aliases_.find(std::string(cursor.word()));
      if (alias == aliases_.end()) return {};
      location = alias->second;
    }
    return {};
  }

  // Reads operations up to the end of the text, or up to the `}` that closes the module.
  void read_body(bool inside) {
    while (!cursor_.at_end()) {
      if (inside && cursor_.peek("}")) return;
      std::size_t begin = cursor_.position();
      if (is_opening(cursor_.text()[begin])) {
        cursor_.balanced();
        continue;
      }
      std::string_view token = cursor_.token();
      if (token == "module" || token == "builtin.module") {
        read_module();
      } else if (token == "\"builtin.module\"") {
        read_generic_module();
      } else if (token == "sdy.mesh") {
        read_mesh();
      } else if (token == "\"sdy.mesh\"") {
        read_generic_mesh();
      } else if (token == "func.func" || token == "func") {
        read_function();
      } else if (token == "\"func.func\"") {
        read_generic_function();
      }
    }
    if (inside) cursor_.fail("the module is not closed");
  }

  void read_module() {
    std::string_view name = cursor_.word();
    if (name.starts_with('@')) {
      facts_.name = symbol(name);
      if (cursor_.accept_word("attributes")) read_module_attributes(read_attributes(cursor_));
    } else if (name == "attributes") {
      read_module_attributes(read_attributes(cursor_));
    }
    cursor_.expect("{");
    read_body(/*inside=*/true);
    cursor_.expect("}");
  }

  void read_generic_module() {
    read_module_attributes(operation_properties());
    cursor_.expect("(");
    cursor_.expect("{");
    if (cursor_.accept("^")) cursor_.expect(":");
    read_body(/*inside=*/true);
    cursor_.expect("}");
    cursor_.expect(")");
    if (cursor_.peek("{")) read_module_attributes(read_attributes(cursor_));
  }

  // Reads `() <{...}>`: the operands and properties between an operation's name and its regions.
  Attributes operation_properties() {
    cursor_.expect("(");
    cursor_.expect(")");
    Attributes found;
    if (cursor_.accept("<")) {
      found = read_attributes(cursor_);
      cursor_.expect(">");
    }
    return found;
  }

  std::string symbol(std::string_view word) {
    word.remove_prefix(1);
    return word.empty() && cursor_.peek_quoted() ? cursor_.quoted() : std::string(word);
  }

  void read_module_attributes(const Attributes& attributes) {
    for (const auto& [name, value] : attributes) {
      if (name == "sym_name") facts_.name = plain(value);
      if (name == "mhlo.num_partitions") {
        TextCursor number(value);
        facts_.num_partitions = number.integer();
      }
      if (name == "mhlo.frontend_attributes") {
        TextCursor inner(value);
        std::string meshes = plain(find_attribute(read_attributes(inner), kFrontendMeshes));
        if (!meshes.empty()) add_frontend_meshes(meshes, facts_);
      }
    }
  }

  void read_mesh() {
    std::string_view name = cursor_.word();
    if (!name.starts_with('@')) cursor_.fail("expected the name of a mesh");
    std::string text = symbol(name);
    cursor_.expect("=");
    facts_.meshes.push_back(parse_module_mesh(text, cursor_.balanced()));
    facts_.uses_shardy = true;
  }

  void read_generic_mesh() {
    Attributes properties = operation_properties();
    if (properties.empty() && cursor_.peek("{")) properties = read_attributes(cursor_);
    std::string_view mesh = find_attribute(properties, "mesh");
    mesh = resolve(mesh);
    std::size_t begin = mesh.find('<');
    if (begin == std::string_view::npos) cursor_.fail("a mesh has no axes");
    facts_.meshes.push_back(
        parse_module_mesh(plain(find_attribute(properties, "sym_name")), mesh.substr(begin)));
    facts_.uses_shardy = true;
  }

  // The attribute that `#name` refers to, if it is an alias; otherwise `value`.
  std::string_view resolve(std::string_view value) {
    auto alias = aliases_.find(std::string(value));
    return alias == aliases_.end() ? value : std::string_view(alias->second);
  }

  void read_function() {
    std::string_view name = cursor_.word();
    while (name == "public" || name == "private" || name == "nested") name = cursor_.word();
    if (!name.starts_with('@')) return;  // not a function
    bool is_main = symbol(name) == "main";
    if (!is_main) {
      if (cursor_.peek("(")) cursor_.balanced();
      return;
    }
    found_main_ = true;
    cursor_.expect("(");
    while (!cursor_.accept(")")) {
      if (cursor_.peek("%")) {
        cursor_.word();
        cursor_.expect(":");
      }
      facts_.arguments.push_back(boundary_value());
      std::string_view place;
      if (cursor_.peek("loc(")) place = cursor_.value();
      places_.push_back(place);
      if (!cursor_.accept(",") && !cursor_.peek(")")) cursor_.fail("expected `,` or `)`");
    }
    if (!cursor_.accept("->")) return;
    if (!cursor_.accept("(")) {
      facts_.results.push_back(
          {.name = {}, .type = std::string(cursor_.value(true)), .sharding = {}});
      return;
    }
    while (!cursor_.accept(")")) {
      facts_.results.push_back(boundary_value());
      if (!cursor_.accept(",") && !cursor_.peek(")")) cursor_.fail("expected `,` or `)`");
    }
  }

  // Reads a type and its attributes.
  ModuleValue boundary_value() {
    ModuleValue value;
    value.type = cursor_.value(/*ends_at_attributes=*/true);
    if (value.type.empty()) cursor_.fail("expected a type");
    if (cursor_.peek("{")) set_attributes(read_attributes(cursor_), value);
    return value;
  }

  void set_attributes(const Attributes& attributes, ModuleValue& value) {
    for (const auto& [name, text] : attributes) {
      if (name == "mhlo.frontend_attributes") {
        TextCursor inner(resolve(text));
        std::string sharding = plain(find_attribute(read_attributes(inner), kFrontendSharding));
        std::erase(sharding, '\\');
        if (!sharding.empty()) set_boundary_attribute("sdy.sharding", sharding, value, facts_);
        continue;
      }
      set_boundary_attribute(name, plain(resolve(text)), value, facts_);
    }
  }

  // Sets the attributes `[{...}, {...}]` on the values, in order.
  void set_attribute_list(std::string_view text, std::vector<ModuleValue>& values) {
    if (text.empty()) return;
    TextCursor cursor(text);
    cursor.expect("[");
    for (std::size_t i = 0; !cursor.accept("]"); ++i) {
      Attributes attributes = read_attributes(cursor);
      if (i < values.size()) set_attributes(attributes, values[i]);
      if (!cursor.accept(",") && !cursor.peek("]")) cursor.fail("expected `,` or `]`");
    }
  }

  static std::vector<ModuleValue> types(TextCursor& cursor) {
    std::vector<ModuleValue> values;
    if (!cursor.accept("(")) {
      values.push_back({.name = {}, .type = std::string(cursor.value()), .sharding = {}});
      return values;
    }
    while (!cursor.accept(")")) {
      values.push_back({.name = {}, .type = std::string(cursor.value()), .sharding = {}});
      if (!cursor.accept(",") && !cursor.peek(")")) cursor.fail("expected `,` or `)`");
    }
    return values;
  }

  void read_generic_function() {
    Attributes properties = operation_properties();
    if (plain(find_attribute(properties, "sym_name")) != "main") return;
    found_main_ = true;
    TextCursor type(find_attribute(properties, "function_type"));
    facts_.arguments = types(type);
    type.expect("->");
    facts_.results = types(type);
    set_attribute_list(find_attribute(properties, "arg_attrs"), facts_.arguments);
    set_attribute_list(find_attribute(properties, "res_attrs"), facts_.results);
    if (!cursor_.accept("(")) return;
    cursor_.expect("{");
    if (cursor_.peek("^")) {  // ^bb0(%arg0: type loc(...), ...):
      cursor_.word();
      if (cursor_.accept("(")) {
        while (!cursor_.accept(")")) {
          cursor_.value(/*ends_at_attributes=*/true);
          places_.push_back(cursor_.peek("loc(") ? cursor_.value() : std::string_view());
          if (!cursor_.accept(",") && !cursor_.peek(")")) cursor_.fail("expected `,` or `)`");
        }
      }
    }
    // Skip the rest of the region.
    while (!cursor_.peek("}")) {
      if (is_opening(cursor_.text()[cursor_.position()])) {
        cursor_.balanced();
      } else {
        cursor_.token();
      }
    }
    cursor_.expect("}");
    cursor_.expect(")");
  }

  TextCursor cursor_;
  ModuleFacts facts_;
  std::unordered_map<std::string, std::string_view> aliases_;
  std::vector<std::string_view> places_;  // locations of main's arguments
  bool found_main_ = false;
};

}  // namespace

ModuleFacts read_text_module(std::string_view text) { return TextModuleReader(text).read(); }

}  // namespace meshard::stablehlo

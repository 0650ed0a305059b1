#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace llm::jinja {

struct Value;
using List = std::vector<Value>;
/// In the order of insertion, as Python's. A namespace() is one, too.
using Dict = std::vector<std::pair<std::string, Value>>;
/// Positional arguments, and those with names.
struct Arguments {
  List list;
  Dict named;
};
using Function = std::function<Value(const Arguments&)>;
struct Undefined {
  std::string name;
  bool operator==(const Undefined&) const { return true; }
};
struct None {
  bool operator==(const None&) const { return true; }
};

/// A value of a template. Lists and dictionaries are handles, as in Python.
struct Value {
  std::variant<Undefined, None, bool, std::int64_t, double, std::string, std::shared_ptr<List>,
               std::shared_ptr<Dict>, std::shared_ptr<Function>>
      data;

  template <class T>
  [[nodiscard]] bool is() const {
    return std::holds_alternative<T>(data);
  }
  [[nodiscard]] const std::string* text() const { return std::get_if<std::string>(&data); }
  [[nodiscard]] const List* list() const;                         ///< null if it is none
  [[nodiscard]] Dict* dict() const;                               ///< null if it is none
  [[nodiscard]] const Value* find(const std::string& key) const;  ///< of a dictionary
};

/// Throws std::invalid_argument.
[[noreturn]] void fail(const std::string& message);

[[nodiscard]] Value from_json(const nlohmann::ordered_json& json);
[[nodiscard]] Value make_list(List list);
[[nodiscard]] Value make_dict(Dict dict);
[[nodiscard]] Value make_function(Function function);

[[nodiscard]] bool is_true(const Value& value);           ///< bool() of Python
[[nodiscard]] std::string to_text(const Value& value);    ///< str() of Python
[[nodiscard]] std::string type_name(const Value& value);  ///< for errors
[[nodiscard]] bool equal(const Value& left, const Value& right);
/// @error std::invalid_argument if the values have no order
[[nodiscard]] bool less(const Value& left, const Value& right);
/// The elements of a list, the keys of a dictionary, or the characters of a text.
/// @error std::invalid_argument for other values
[[nodiscard]] List elements(const Value& value);
/// json.dumps(value, ensure_ascii=False, indent=indent) of Python; no indentation if it is
/// negative.
[[nodiscard]] std::string to_json(const Value& value, std::int64_t indent, std::int64_t depth = 0);

}  // namespace llm::jinja

#include "examples/llm/text/jinja_value.h"

#include <charconv>
#include <cmath>
#include <stdexcept>

#include "examples/llm/text/unicode.h"

namespace llm::jinja {
namespace {

std::string float_text(double number) {
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  if (std::isnan(number)) return "nan";
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, number);
  std::string result(text, end.ptr);
  if (result.find_first_of(".en") == std::string::npos) result += ".0";
  return result;
}

/// repr() of Python.
std::string representation(const Value& value) {
  if (const auto* text = value.text()) {
    const char quote =
        text->find('\'') != std::string::npos && text->find('"') == std::string::npos ? '"' : '\'';
    std::string result(1, quote);
    for (const char c : *text) {
      if (c == quote || c == '\\') result += '\\';
      if (c == '\n') {
        result += "\\n";
      } else if (c == '\t') {
        result += "\\t";
      } else if (c == '\r') {
        result += "\\r";
      } else {
        result += c;
      }
    }
    return result + quote;
  }
  return to_text(value);
}

double number_of(const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value.data))
    return static_cast<double>(*number);
  if (const auto* number = std::get_if<double>(&value.data)) return *number;
  if (const auto* truth = std::get_if<bool>(&value.data)) return *truth ? 1 : 0;
  return std::nan("");
}

}  // namespace

void fail(const std::string& message) { throw std::invalid_argument(message); }

const List* Value::list() const {
  const auto* found = std::get_if<std::shared_ptr<List>>(&data);
  return found ? found->get() : nullptr;
}

Dict* Value::dict() const {
  const auto* found = std::get_if<std::shared_ptr<Dict>>(&data);
  return found ? found->get() : nullptr;
}

const Value* Value::find(const std::string& key) const {
  if (const Dict* entries = dict())
    for (const auto& [name, value] : *entries)
      if (name == key) return &value;
  return nullptr;
}

Value make_list(List list) { return {std::make_shared<List>(std::move(list))}; }
Value make_dict(Dict dict) { return {std::make_shared<Dict>(std::move(dict))}; }
Value make_function(Function function) { return {std::make_shared<Function>(std::move(function))}; }

Value from_json(const nlohmann::ordered_json& json) {
  if (json.is_null()) return {None{}};
  if (json.is_boolean()) return {json.get<bool>()};
  if (json.is_number_integer()) return {json.get<std::int64_t>()};
  if (json.is_number()) return {json.get<double>()};
  if (json.is_string()) return {json.get<std::string>()};
  if (json.is_array()) {
    List list;
    for (const auto& element : json) list.push_back(from_json(element));
    return make_list(std::move(list));
  }
  Dict dict;
  for (const auto& [key, value] : json.items()) dict.emplace_back(key, from_json(value));
  return make_dict(std::move(dict));
}

bool is_true(const Value& value) {
  if (const auto* truth = std::get_if<bool>(&value.data)) return *truth;
  if (const auto* text = value.text()) return !text->empty();
  if (const auto* list = value.list()) return !list->empty();
  if (const auto* dict = value.dict()) return !dict->empty();
  if (value.is<std::shared_ptr<Function>>()) return true;
  const double number = number_of(value);
  return !std::isnan(number) && number != 0;
}

std::string to_text(const Value& value) {
  if (value.is<Undefined>()) return {};
  if (value.is<None>()) return "None";
  if (const auto* truth = std::get_if<bool>(&value.data)) return *truth ? "True" : "False";
  if (const auto* number = std::get_if<std::int64_t>(&value.data)) return std::to_string(*number);
  if (const auto* number = std::get_if<double>(&value.data)) return float_text(*number);
  if (const auto* text = value.text()) return *text;
  std::string result;
  if (const auto* list = value.list()) {
    for (const auto& element : *list)
      result += (result.empty() ? "" : ", ") + representation(element);
    return "[" + result + "]";
  }
  if (const auto* dict = value.dict()) {
    for (const auto& [key, element] : *dict)
      result +=
          (result.empty() ? "" : ", ") + representation({key}) + ": " + representation(element);
    return "{" + result + "}";
  }
  throw std::invalid_argument("a function has no text");
}

std::string type_name(const Value& value) {
  if (const auto* missing = std::get_if<Undefined>(&value.data))
    return "undefined '" + missing->name + "'";
  if (value.is<None>()) return "None";
  if (value.is<bool>()) return "a bool";
  if (value.is<std::int64_t>() || value.is<double>()) return "a number";
  if (value.text()) return "a text";
  if (value.list()) return "a list";
  return value.dict() ? "a dictionary" : "a function";
}

bool equal(const Value& left, const Value& right) {
  const double a = number_of(left), b = number_of(right);
  if (!std::isnan(a) && !std::isnan(b)) return a == b;
  if (left.text() && right.text()) return *left.text() == *right.text();
  if (left.list() && right.list()) {
    const List &first = *left.list(), &second = *right.list();
    if (first.size() != second.size()) return false;
    for (std::size_t i = 0; i < first.size(); ++i)
      if (!equal(first[i], second[i])) return false;
    return true;
  }
  if (left.dict() && right.dict()) {
    if (left.dict()->size() != right.dict()->size()) return false;
    for (const auto& [key, value] : *left.dict()) {
      const Value* other = right.find(key);
      if (!other || !equal(value, *other)) return false;
    }
    return true;
  }
  return (left.is<None>() && right.is<None>()) || (left.is<Undefined>() && right.is<Undefined>());
}

bool less(const Value& left, const Value& right) {
  if (left.text() && right.text()) return *left.text() < *right.text();
  const double a = number_of(left), b = number_of(right);
  if (std::isnan(a) || std::isnan(b))
    throw std::invalid_argument("'<' cannot compare " + type_name(left) + " and " +
                                type_name(right));
  return a < b;
}

List elements(const Value& value) {
  if (const auto* list = value.list()) return *list;
  List result;
  if (const auto* dict = value.dict()) {
    for (const auto& entry : *dict) result.push_back({entry.first});
    return result;
  }
  if (value.is<Undefined>()) return result;
  const auto* text = value.text();
  if (!text) throw std::invalid_argument(type_name(value) + " has no elements");
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t length = utf8_length((*text)[at]);
    result.push_back({text->substr(at, length)});
    at += length;
  }
  return result;
}

std::string to_json(const Value& value, std::int64_t indent, std::int64_t depth) {
  const auto line = [&](std::int64_t level) {
    return indent < 0 ? std::string()
                      : "\n" + std::string(static_cast<std::size_t>(indent * level), ' ');
  };
  const std::string comma = indent < 0 ? ", " : ",";
  std::string inner;
  if (const auto* list = value.list()) {
    for (const auto& element : *list)
      inner += (inner.empty() ? "" : comma) + line(depth + 1) + to_json(element, indent, depth + 1);
    return list->empty() ? "[]" : "[" + inner + line(depth) + "]";
  }
  if (const auto* dict = value.dict()) {
    for (const auto& [key, element] : *dict)
      inner += (inner.empty() ? "" : comma) + line(depth + 1) + nlohmann::json(key).dump() + ": " +
               to_json(element, indent, depth + 1);
    return dict->empty() ? "{}" : "{" + inner + line(depth) + "}";
  }
  if (value.is<None>()) return "null";
  if (const auto* truth = std::get_if<bool>(&value.data)) return *truth ? "true" : "false";
  if (const auto* text = value.text()) return nlohmann::json(*text).dump();
  if (value.is<std::int64_t>() || value.is<double>()) return to_text(value);
  throw std::invalid_argument("tojson: " + type_name(value) + " has no JSON");
}

}  // namespace llm::jinja

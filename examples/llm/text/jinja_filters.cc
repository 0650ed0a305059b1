#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <utility>

#include "examples/llm/text/jinja_expression.h"
#include "examples/llm/text/unicode.h"

namespace llm::jinja {
namespace {

/// An argument by place or name; undefined if it is not given.
Value argument(const Arguments& arguments, std::size_t place, const std::string& name) {
  for (const auto& [key, value] : arguments.named)
    if (key == name) return value;
  return place < arguments.list.size() ? arguments.list[place] : Value{Undefined{name}};
}

std::int64_t integer(const Value& value, std::int64_t fallback) {
  if (value.is<Undefined>() || value.is<None>()) return fallback;
  const auto* number = std::get_if<std::int64_t>(&value.data);
  if (!number) fail(type_name(value) + " is given for a number");
  return *number;
}

std::string stripped(const std::string& text, const Value& characters, bool left, bool right) {
  const auto* given = characters.text();
  if (!given) return llm::stripped(text, left, right);
  const std::u32string set = code_points(*given);
  return llm::stripped(text, left, right,
                       [&](char32_t c) { return set.find(c) != std::u32string::npos; });
}

std::string replaced(std::string text, const Value& old_part, const Value& new_part,
                     std::int64_t most) {
  if (!old_part.text() || !new_part.text() || old_part.text()->empty())
    fail("replace: two texts are needed");
  for (std::size_t at = 0; most != 0 && (at = text.find(*old_part.text(), at)) != std::string::npos;
       --most) {
    text.replace(at, old_part.text()->size(), *new_part.text());
    at += new_part.text()->size();
  }
  return text;
}

List split(const std::string& text, const Value& separator, std::int64_t most) {
  List parts;
  std::size_t at = 0;
  if (const auto* given = separator.text()) {
    if (given->empty()) fail("split: the separator is empty");
    for (std::size_t end; most != 0 && (end = text.find(*given, at)) != std::string::npos; --most) {
      parts.push_back({text.substr(at, end - at)});
      at = end + given->size();
    }
    parts.push_back({text.substr(at)});
    return parts;
  }
  const std::string spaces = " \t\n\r\f\v";
  while ((at = text.find_first_not_of(spaces, at)) != std::string::npos) {
    const std::size_t end = most-- == 0 ? std::string::npos : text.find_first_of(spaces, at);
    parts.push_back({text.substr(at, end - at)});
    if (end == std::string::npos) break;
    at = end;
  }
  return parts;
}

enum class Case { kUpper, kLower, kTitle, kTitleFilter };

/// ASCII letters in another case; other letters that have a case are not supported. Python's
/// title() begins a word after each character that is not a letter, Jinja's filter only after white
/// space, - ( { [ and <.
std::string with_case(std::string text, Case wanted) {
  bool inside = false;
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) fail("upper and lower case of letters outside of ASCII are not supported");
    const bool title = wanted == Case::kTitle || wanted == Case::kTitleFilter;
    c = static_cast<char>((title ? !inside : wanted == Case::kUpper) ? std::toupper(byte)
                                                                     : std::tolower(byte));
    inside = wanted == Case::kTitle
                 ? std::isalpha(byte) != 0
                 : !std::isspace(byte) && std::string("-({[<").find(c) == std::string::npos;
  }
  return text;
}

Value affix(const std::string& text, const Value& parts, bool front) {
  const List list = parts.text() ? List{parts} : elements(parts);
  return {std::any_of(list.begin(), list.end(), [&](const Value& part) {
    return part.text() && (front ? text.starts_with(*part.text()) : text.ends_with(*part.text()));
  })};
}

List items(const Value& value, bool keys, bool values) {
  if (!value.dict()) fail(type_name(value) + " has no items");
  List list;
  for (const auto& [key, element] : *value.dict())
    list.push_back(keys && values ? make_list({{key}, element}) : keys ? Value{key} : element);
  return list;
}

Value attribute(const Value& object, const Value& path) {
  const Value* found = path.text() ? object.find(*path.text()) : nullptr;
  return found ? *found : Value{Undefined{to_text(path)}};
}

/// selectattr, rejectattr, select, reject.
Value selected(const std::string& name, const Value& value, Arguments arguments) {
  const bool by_attribute = name.ends_with("attr");
  List result;
  auto& list = arguments.list;
  Value key;
  if (by_attribute) {
    if (list.empty()) fail(name + ": the attribute is missing");
    key = list.front();
    list.erase(list.begin());
  }
  std::string test;
  if (!list.empty()) {
    test = to_text(list.front());
    list.erase(list.begin());
  }
  for (const auto& element : elements(value)) {
    const Value looked_at = by_attribute ? attribute(element, key) : element;
    const bool holds = test.empty() ? is_true(looked_at) : apply_test(test, looked_at, arguments);
    if (holds == name.starts_with("select")) result.push_back(element);
  }
  return make_list(std::move(result));
}

Value mapped(const Value& value, const Arguments& arguments) {
  List result;
  const Value key = argument(arguments, 9, "attribute");
  for (const auto& element : elements(value)) {
    if (!key.is<Undefined>()) {
      result.push_back(attribute(element, key));
    } else {
      if (arguments.list.empty()) fail("map: the filter is missing");
      result.push_back(
          apply_filter(to_text(arguments.list[0]), element,
                       {{arguments.list.begin() + 1, arguments.list.end()}, arguments.named}));
    }
  }
  return make_list(std::move(result));
}

Value joined(const Value& value, const Value& separator) {
  std::string text;
  bool first = true;
  for (const auto& element : elements(value)) {
    if (!std::exchange(first, false)) text += to_text(separator);
    text += to_text(element);
  }
  return {text};
}

Value filter_text(const std::string& name, const std::string& text, const Arguments& arguments) {
  if (name == "trim") return {stripped(text, argument(arguments, 0, "chars"), true, true)};
  if (name == "upper") return {with_case(text, Case::kUpper)};
  if (name == "lower") return {with_case(text, Case::kLower)};
  if (name == "title") return {with_case(text, Case::kTitleFilter)};
  if (name == "capitalize")
    return {text.empty() ? text
                         : with_case(text.substr(0, 1), Case::kUpper) +
                               with_case(text.substr(1), Case::kLower)};
  if (name == "replace")
    return {replaced(text, argument(arguments, 0, "old"), argument(arguments, 1, "new"),
                     integer(argument(arguments, 2, "count"), -1))};
  fail("the filter \"" + name + "\" is not supported");
}

}  // namespace

Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments) {
  if (name == "length" || name == "count")
    return {static_cast<std::int64_t>(elements(value).size())};
  if (name == "tojson") return {to_json(value, integer(argument(arguments, 9, "indent"), -1))};
  if (name == "join") return joined(value, argument(arguments, 0, "d"));
  if (name == "list") return make_list(elements(value));
  if (name == "string") return {to_text(value)};
  if (name == "safe") return value;
  if (name == "items") return make_list(items(value, true, true));
  if (name == "map") return mapped(value, arguments);
  if (name == "selectattr" || name == "rejectattr" || name == "select" || name == "reject")
    return selected(name, value, arguments);
  if (name == "default" || name == "d") {
    const bool no_value = is_true(argument(arguments, 1, "boolean")) && !is_true(value);
    return value.is<Undefined>() || no_value ? argument(arguments, 0, "default_value") : value;
  }
  if (name == "first" || name == "last") {
    const List list = elements(value);
    if (list.empty()) return {Undefined{name}};
    return name == "first" ? list.front() : list.back();
  }
  if (name == "reverse") {
    List list = elements(value);
    std::reverse(list.begin(), list.end());
    return make_list(std::move(list));
  }
  if (name == "int") {
    if (const auto* number = std::get_if<double>(&value.data))
      return {static_cast<std::int64_t>(*number)};
    if (value.is<std::int64_t>()) return value;
    fail("int: " + type_name(value) + " is not supported");
  }
  return filter_text(name, to_text(value), arguments);
}

bool apply_test(const std::string& name, const Value& value, const Arguments& arguments) {
  const Value other = argument(arguments, 0, "other");
  const auto* integer_value = std::get_if<std::int64_t>(&value.data);
  if (name == "defined") return !value.is<Undefined>();
  if (name == "undefined") return value.is<Undefined>();
  if (name == "none") return value.is<None>();
  if (name == "string") return value.text() != nullptr;
  if (name == "mapping") return value.dict() != nullptr;
  if (name == "iterable")
    return value.text() || value.list() || value.dict() || value.is<Undefined>();
  if (name == "sequence")
    return value.text() || value.list() || value.dict() || value.is<Undefined>();
  if (name == "number") return integer_value || value.is<double>() || value.is<bool>();
  if (name == "integer") return integer_value != nullptr;
  if (name == "float") return value.is<double>();
  if (name == "boolean") return value.is<bool>();
  if (name == "true") return value.is<bool>() && is_true(value);
  if (name == "false") return value.is<bool>() && !is_true(value);
  if (name == "callable") return value.is<std::shared_ptr<Function>>();
  if (name == "equalto" || name == "eq" || name == "==") return equal(value, other);
  if (name == "ne" || name == "!=") return !equal(value, other);
  if (name == "in") {
    const List list = elements(other);
    return std::any_of(list.begin(), list.end(),
                       [&](const Value& one) { return equal(one, value); });
  }
  if (integer_value && name == "odd") return *integer_value % 2 != 0;
  if (integer_value && name == "even") return *integer_value % 2 == 0;
  if (integer_value && name == "divisibleby" && integer(other, 0) != 0)
    return *integer_value % integer(other, 0) == 0;
  fail("the test \"" + name + "\" of " + type_name(value) + " is not supported");
}

Value call_method(const Value& object, const std::string& name, const Arguments& arguments) {
  const Value first = argument(arguments, 0, "");
  if (const auto* text = object.text()) {
    if (name == "strip") return {stripped(*text, first, true, true)};
    if (name == "lstrip") return {stripped(*text, first, true, false)};
    if (name == "rstrip") return {stripped(*text, first, false, true)};
    if (name == "startswith") return affix(*text, first, true);
    if (name == "endswith") return affix(*text, first, false);
    if (name == "split")
      return make_list(split(*text, argument(arguments, 0, "sep"),
                             integer(argument(arguments, 1, "maxsplit"), -1)));
    if (name == "title") return {with_case(*text, Case::kTitle)};
    if (name == "upper" || name == "lower" || name == "replace" || name == "capitalize")
      return filter_text(name, *text, arguments);
  }
  if (object.dict()) {
    if (name == "items") return make_list(items(object, true, true));
    if (name == "keys") return make_list(items(object, true, false));
    if (name == "values") return make_list(items(object, false, true));
    if (name == "get") {
      const Value* found = first.text() ? object.find(*first.text()) : nullptr;
      if (found) return *found;
      return arguments.list.size() > 1 ? arguments.list[1] : Value{None{}};
    }
  }
  fail(type_name(object) + " has no method \"" + name + "\", or it is not supported");
}

}  // namespace llm::jinja

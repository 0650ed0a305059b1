// Classes of Python for the values of reports, made from their fields (MESHARD_FIELDS) and
// comments.
#pragma once
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/base/field_notes.h"
#include "meshard/base/fields.h"
#include "python/bindings/reports/reports.h"

namespace meshard::python {

/// The comment of a struct in its header, `MemoryUse`, or of a member, `MemoryUse.aliased`; empty
/// if there is none.
const char* comment_of(std::string_view name);

template <class T>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsMaybe = false;
template <class T>
inline constexpr bool kIsMaybe<std::optional<T>> = true;

/// Types that are text in Python.
template <class T>
concept TextInPython = std::is_enum_v<T> || std::same_as<T, TensorType> ||
    std::same_as<T, AxisShift> || std::convertible_to<T, std::string_view>;

/// The word for a value of an enum.
template <class E>
std::string word_of(E value) {
  if constexpr (requires { to_string(value); })
    return std::string(to_string(value));
  else
    return std::string(enum_name(value));
}

/// A field of a value as Python has it: enums by name, axes as a tuple of names.
template <class T>
nanobind::object python_value(const T& value) {
  if constexpr (std::convertible_to<T, std::string_view>) {
    return nanobind::cast(std::string(value));
  } else if constexpr (std::is_enum_v<T>) {
    return nanobind::cast(word_of(value));
  } else if constexpr (TextInPython<T>) {
    return nanobind::cast(std::string(to_string(value)));
  } else if constexpr (std::same_as<T, AxisList>) {
    return axes_tuple(value);
  } else if constexpr (kIsMaybe<T>) {
    return value ? python_value(*value) : nanobind::none();
  } else if constexpr (kIsList<T>) {
    nanobind::list all;
    for (const auto& each : value) all.append(python_value(each));
    return all;
  } else {
    return nanobind::cast(value);
  }
}

/// The type of python_value(), for stubs. @pre the classes of T are bound
template <class T>
std::string python_type() {
  if constexpr (TextInPython<T>)
    return "str";
  else if constexpr (std::same_as<T, AxisList>)
    return "tuple[str, ...]";
  else if constexpr (kIsMaybe<T>)
    return python_type<typename T::value_type>() + " | None";
  else if constexpr (kIsList<T>)
    return cat("list[", python_type<typename T::value_type>(), "]");
  else if constexpr (std::same_as<T, bool>)
    return "bool";
  else if constexpr (std::integral<T>)
    return "int";
  else if constexpr (std::floating_point<T>)
    return "float";
  else
    return nanobind::cast<std::string>(nanobind::type<T>().attr("__name__"));
}

/// The words that a field of an enum may be, for its docstring; empty for other types.
template <class T>
std::string words_of() {
  std::string words;
  if constexpr (NamedEnum<T>)
    for (const auto& each : EnumNames<T>::kNames)
      if (std::string word = word_of(each.value); !word.empty())
        append(words, cat(words.empty() ? "`" : ", `", word, "`"));
  return words;
}

/// A value as one of its base classes, or itself.
template <class Fields>
const Fields& itself(const Fields& value) {
  return value;
}

/// Adds a property for each field of Fields. `from` and `to` are `before` and `after`, because
/// `from` is a keyword of Python.
/// @param name the struct's name in the header
/// @param but fields that get no property, with a space between
/// @param fields_of the Fields of a value of the class
template <class Fields, class Class, class FieldsOf = const Fields& (*)(const Fields&)>
void add_fields(Class& type, std::string_view name, std::string_view but = {},
                FieldsOf fields_of = itself<Fields>) {
  const Fields example{};
  std::size_t count = 0;
  visit_fields(example, [&](std::string_view field, const auto& value) {
    std::size_t index = count++;
    if (lists_name(but, field)) return;
    auto get = [index, fields_of](const typename Class::Type& self) {
      nanobind::object found;
      std::size_t i = 0;
      visit_fields(fields_of(self), [&](std::string_view, const auto& each) {
        if (i++ == index) found = python_value(each);
      });
      return found;
    };
    std::string_view written = written_name(field);
    std::string property(written == "from" ? "before" : written == "to" ? "after" : written);
    std::string signature =
        cat("def ", property, "(self) -> ", python_type<std::remove_cvref_t<decltype(value)>>());
    std::string comment = comment_of(cat(name, ".", written));
    std::string words = words_of<std::remove_cvref_t<decltype(value)>>();
    if (!words.empty()) append(comment, cat(comment.empty() ? "" : " ", words, "."));
    type.def_prop_ro(property.c_str(), get, nanobind::sig(signature.c_str()), comment.c_str());
  });
}

/// Adds str(), repr() and ==, for a type with to_string().
template <class Class>
void add_text(Class& type, const char* name) {
  using T = typename Class::Type;
  type.def("__str__", [](const T& value) { return value.to_string(); });
  type.def("__repr__",
           [name](const T& value) { return cat("<", name, ": ", value.to_string(), ">"); });
  if constexpr (requires(const T& a) { a == a; }) {
    type.def("__eq__", [](const T& value, nanobind::handle other) {
      const T* one = nullptr;
      return nanobind::try_cast<const T*>(other, one) && one && value == *one;
    });
    type.attr("__hash__") = nanobind::none();
  }
}

/// A class with the fields and the text of a value.
/// @param name the class
/// @param but fields that get no property
/// @param struct_name the struct, if its name is another one
template <class T>
nanobind::class_<T> bind_value(nanobind::module_& module, const char* name,
                               std::string_view but = {}, const char* struct_name = nullptr) {
  if (!struct_name) struct_name = name;
  nanobind::class_<T> type(module, name, comment_of(struct_name));
  add_fields<T>(type, struct_name, but);
  if constexpr (requires(const T& value) {
                  { value.to_string() } -> std::convertible_to<std::string>;
                })
    add_text(type, name);
  return type;
}

}  // namespace meshard::python

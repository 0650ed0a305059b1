// Writes structs with MESHARD_FIELDS as JSON objects, and reads them.
//
// A struct becomes an object whose members have the names of its fields, in their order. Enums are
// written by name (EnumNames), lists as arrays, values that may be missing as null. What is special
// about a field is in the struct's FieldNotes.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "meshard/base/enum_names.h"
#include "meshard/base/field_notes.h"
#include "meshard/base/fields.h"
#include "meshard/base/json_reader.h"
#include "meshard/base/json_writer.h"

namespace meshard {

/// A view of a JSON value and where it is, for messages: `[report] memory.code: expected a string`.
/// @pre the value, the format and the places that contain it outlive it
class JsonPlace {
 public:
  /// The whole text. @param format the prefix of messages, in brackets
  JsonPlace(const JsonValue& value, std::string_view format) : value_(&value), format_(format) {}

  /// A member of an object. @error data loss, as in all functions below: it has no such member
  JsonPlace operator[](std::string_view key) const;
  bool has(std::string_view key) const { return value_->find(key) != nullptr; }
  std::size_t size() const;
  JsonPlace element(std::size_t i) const;
  bool is_null() const { return value_->is(JsonValue::Kind::kNull); }
  bool is_text() const { return value_->is(JsonValue::Kind::kString); }
  const std::string& text() const;
  bool truth() const;
  /// Infinity for null, which JsonWriter writes for infinities and NaN.
  double number() const;
  std::int64_t integer() const;
  /// An integer from low to high.
  std::int64_t integer(std::int64_t low, std::int64_t high) const;
  [[noreturn]] void fail(std::string_view what) const;

 private:
  JsonPlace(const JsonValue& value, const JsonPlace& parent, std::string_view key,
            std::size_t index)
      : value_(&value), format_(parent.format_), parent_(&parent), key_(key), index_(index) {}
  std::string path() const;

  const JsonValue* value_;
  std::string_view format_;
  const JsonPlace* parent_ = nullptr;  // on the caller's stack
  std::string_view key_;               // empty: an array element
  std::size_t index_ = 0;
};

/// How a format writes, reads and checks types that have no fields. A format derives from it, says
/// `using JsonForms::write` and so on, and adds overloads for its types.
struct JsonForms {
  template <class T>
  void write(JsonWriter& json, const T& value) const = delete;
  template <class T>
  void read(const JsonPlace& at, T& to) const = delete;
  /// Called after the fields of a value were read. @error what is wrong with them
  template <class T>
  void check(const JsonPlace& at, const T& value) const = delete;
};

namespace internal {

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

}  // namespace internal

/// Writes the fields of a struct as members of the object that is open.
template <HasFields T, class Forms = JsonForms>
void write_json_members(JsonWriter& json, const T& value, const Forms& forms = {});

/// Writes a value.
template <class T, class Forms = JsonForms>
void write_json(JsonWriter& json, const T& value, const Forms& forms = {}) {
  if constexpr (requires { forms.write(json, value); }) {
    forms.write(json, value);
  } else if constexpr (internal::kIsOptional<T>) {
    if (value)
      write_json(json, *value, forms);
    else
      json.value(nullptr);
  } else if constexpr (HasFields<T>) {
    json.begin_object();
    write_json_members(json, value, forms);
    json.end_object();
  } else if constexpr (std::is_enum_v<T>) {
    json.value(enum_name(value));
  } else if constexpr (requires { json.value(value); }) {
    json.value(value);
  } else {
    json.begin_array();
    for (const auto& each : value) write_json(json, each, forms);
    json.end_array();
  }
}

template <HasFields T, class Forms>
void write_json_members(JsonWriter& json, const T& value, const Forms& forms) {
  constexpr FieldNotes kNotes = field_notes<T>();
  visit_fields(value, [&](std::string_view name, const auto& field) {
    if constexpr (!kNotes.local.empty())
      if (lists_name(kNotes.local, name)) return;
    if constexpr (HasFields<decltype(field)> && !kNotes.inlined.empty())
      if (lists_name(kNotes.inlined, name)) return write_json_members(json, field, forms);
    json.key(written_name(name));
    write_json(json, field, forms);
  });
}

/// Reads the fields of a struct from the members of an object.
template <HasFields T, class Forms = JsonForms>
void read_json_members(const JsonPlace& at, T& to, const Forms& forms = {});

/// Reads what write_json() wrote. Members that are derived from others are not read; unknown ones
/// are ignored.
/// @error data loss, naming the member: it is missing, or not of the type
template <class T, class Forms = JsonForms>
void read_json(const JsonPlace& at, T& to, const Forms& forms = {}) {
  if constexpr (requires { forms.read(at, to); }) {
    forms.read(at, to);
  } else if constexpr (internal::kIsOptional<T>) {
    if (at.is_null())
      to.reset();
    else
      read_json(at, to.emplace(), forms);
  } else if constexpr (HasFields<T>) {
    read_json_members(at, to, forms);
    if constexpr (requires { forms.check(at, to); }) forms.check(at, to);
  } else if constexpr (std::is_enum_v<T>) {
    for (const auto& [known, name] : EnumNames<T>::kNames)
      if (at.text() == name) return static_cast<void>(to = known);
    at.fail("unknown word `" + at.text() + "`");
  } else if constexpr (std::same_as<T, bool>) {
    to = at.truth();
  } else if constexpr (std::same_as<T, std::int64_t>) {
    to = at.integer();
  } else if constexpr (std::integral<T>) {  // counts and numbers of things
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    constexpr T kMostOfType = std::numeric_limits<T>::max();
    to = static_cast<T>(at.integer(
        0, std::cmp_less(kMostOfType, kMost) ? static_cast<std::int64_t>(kMostOfType) : kMost));
  } else if constexpr (std::floating_point<T>) {
    to = at.number();
  } else if constexpr (std::same_as<T, std::string>) {
    to = at.text();
  } else {
    std::size_t size = at.size();
    to.clear();
    for (std::size_t i = 0; i < size; ++i) {
      typename T::value_type each{};
      read_json(at.element(i), each, forms);
      to.push_back(std::move(each));
    }
  }
}

template <HasFields T, class Forms>
void read_json_members(const JsonPlace& at, T& to, const Forms& forms) {
  constexpr FieldNotes kNotes = field_notes<T>();
  visit_fields(to, [&](std::string_view name, auto& field) {
    if (lists_name(kNotes.local, name)) return;
    if constexpr (HasFields<decltype(field)>)
      if (lists_name(kNotes.inlined, name)) return read_json_members(at, field, forms);
    if (at.has(name) || !lists_name(kNotes.later, name)) read_json(at[name], field, forms);
  });
}

}  // namespace meshard

// Named, typed values: options given to a plugin, which are checked, and attributes read from it.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/base/result.h"

namespace meshard::pjrt {

/// A value: a name with a string, integer, list of integers, float or bool.
struct NamedValue {
  using Value = std::variant<std::string, std::int64_t, std::vector<std::int64_t>, float, bool>;

  std::string name;
  Value value;

  MESHARD_FIELDS(name, value)
  /// `name = value`; strings are quoted, lists are in brackets.
  std::string to_string() const;
  /// The value only, formatted as in to_string().
  std::string value_string() const;
  friend bool operator==(const NamedValue&, const NamedValue&) = default;
};

/// The name of a value's kind: `string`, `int64`, `int64 list`, `float`, `bool`.
std::string_view kind_of(const NamedValue::Value& value);

/// The value of the first entry named `name`, if it is of type T; otherwise null.
template <class T>
const T* find_value(const std::vector<NamedValue>& values, std::string_view name) {
  for (const NamedValue& entry : values)
    if (entry.name == name) return std::get_if<T>(&entry.value);
  return nullptr;
}

/// One option that some plugin accepts: its name, its kind (as named by kind_of) and, for an
/// integer, its range.
struct ClientOptionSpec {
  std::string_view name;
  std::string_view kind;
  std::string_view platform;  // of the plugins that accept it
  std::int64_t least = INT64_MIN;
  std::int64_t most = INT64_MAX;
};

/// Checks names, kinds and ranges of options. Plugins silently ignore an unknown name, and may
/// abort the process if a value has the wrong kind.
/// @error invalid argument; for an unknown name, the message lists the known ones
Result<void> check_client_options(std::span<const NamedValue> options,
                                  std::span<const ClientOptionSpec> more = {});

}  // namespace meshard::pjrt

// Reads JSON text (RFC 8259) from anywhere: hostile input is refused, with its place.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard {

struct JsonMember;

/// A value of JSON. Members of objects are in the order of the text.
struct JsonValue {
  enum class Kind : std::uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  bool truth = false;  // of a bool
  std::string text;    // of a string, decoded; of a number, as it is written
  std::vector<JsonValue> elements;
  std::vector<JsonMember> members;

  bool is(Kind asked) const { return kind == asked; }
  /// The member of this name; null if there is none, or if this is no object.
  const JsonValue* find(std::string_view name) const;
  /// A number written as a whole number that fits; none for anything else.
  std::optional<std::uint64_t> whole_number() const;
};

/// Of an object.
struct JsonMember {
  std::string name;
  JsonValue value;
};

/// @param place what messages begin with, in brackets
/// @error invalid argument, with the byte, for what is no JSON: nesting beyond 64, a name twice in
/// an object, half of a surrogate pair, strings that are not UTF-8, and bytes behind the value,
/// too.
Result<JsonValue> read_json(std::string_view text, std::string_view place = "json");

/// How read_json_members bounds what it holds.
struct JsonLimits {
  /// The most values in the value of one member, itself included.
  std::size_t values = 1'000'000;
};

/// Reads an object member by member, holding one at a time: texts of any size need little memory.
/// @param on_member is given each name and value; an error ends the reading
/// @error as read_json, also for a text that is no object and for a member with too many values;
/// what `on_member` answers
Result<void> read_json_members(
    std::string_view text, std::string_view place,
    const std::function<Result<void>(const std::string& name, const JsonValue& value)>& on_member,
    JsonLimits limits = {});

}  // namespace meshard

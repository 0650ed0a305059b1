// Reads JSON text (RFC 8259) from untrusted sources. Invalid input is rejected with its position.
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

/// A JSON value. Members of an object keep the order of the text.
struct JsonValue {
  enum class Kind : std::uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  bool truth = false;  // for a bool
  std::string text;    // for a string: decoded; for a number: as written
  std::vector<JsonValue> elements;
  std::vector<JsonMember> members;

  bool is(Kind asked) const { return kind == asked; }
  /// The member with this name; null if there is none, or if this is not an object.
  const JsonValue* find(std::string_view name) const;
  /// The value of a number written as an integer that fits; otherwise nullopt.
  std::optional<std::uint64_t> whole_number() const;
};

/// A member of a JSON object.
struct JsonMember {
  std::string name;
  JsonValue value;
};

/// Parses a complete JSON text.
/// @param place the prefix of error messages, in brackets
/// @error invalid argument, with the byte offset, for anything that is not valid JSON; also for
/// nesting deeper than 64, duplicate names in an object, unpaired surrogates, strings that are not
/// UTF-8, and trailing bytes after the value.
Result<JsonValue> read_json(std::string_view text, std::string_view place = "json");

/// Limits the memory that read_json_members uses.
struct JsonLimits {
  /// The maximum number of values in one member's value, including the value itself. Default:
  /// 1,000,000.
  std::size_t values = 1'000'000;
};

/// Reads an object member by member, with only one in memory at a time.
/// @param on_member is called with each name and value; an error stops the reading
/// @error as read_json; also for a text that is not an object, and for a member with too many
/// values; any error that `on_member` returns
Result<void> read_json_members(
    std::string_view text, std::string_view place,
    const std::function<Result<void>(const std::string& name, const JsonValue& value)>& on_member,
    JsonLimits limits = {});

}  // namespace meshard

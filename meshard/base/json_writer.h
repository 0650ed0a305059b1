// Writes JSON text (RFC 8259) incrementally.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace meshard {

/// Appends `text` as a quoted JSON string. Control characters, `"` and `\` are escaped. A byte that
/// is not part of a UTF-8 sequence becomes U+FFFD, so the result is always valid UTF-8.
void append_json_string(std::string& out, std::string_view text);

/// An owner of JSON text that grows with every call. Calls nest as the text does:
///
/// ```
/// JsonWriter json;
/// json.begin_object();
/// json.member("name", "all-reduce.1");
/// json.key("bytes").value(4096);
/// json.key("axes").begin_array();
/// json.value("data").value("model");
/// json.end_array();
/// json.end_object();
/// std::move(json).text();  // {"name":"all-reduce.1","bytes":4096,"axes":["data","model"]}
/// ```
///
/// Integers are written with all digits, floating-point numbers in the shortest form that reads
/// back to the same value. Infinities and NaN, which JSON lacks, are written as null.
/// @error internal: a sequence of calls that does not form valid JSON (a value without a key in an
/// object, an end that does not match its begin, a second top-level value).
class JsonWriter {
 public:
  /// @param indent spaces per nesting level, with one member or element per line; 0 (the default):
  /// everything on one line.
  explicit JsonWriter(std::size_t indent = 0) : indent_(indent) {}

  JsonWriter& begin_object() { return begin('{'); }
  JsonWriter& end_object() { return end('}'); }
  JsonWriter& begin_array() { return begin('['); }
  JsonWriter& end_array() { return end(']'); }
  /// Writes the key of the next value in an object. Duplicate keys are not detected.
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(std::nullptr_t) { return raw("null"); }
  template <class T>
  requires std::same_as<T, bool> JsonWriter& value(T truth) {
    return raw(truth ? "true" : "false");
  }
  template <class T>
  requires(std::integral<T> && !std::same_as<T, bool> &&
           !std::same_as<T, char>) JsonWriter& value(T number) {
    if constexpr (std::is_signed_v<T>) {
      return signed_value(number);
    } else {
      return unsigned_value(number);
    }
  }
  JsonWriter& value(double number);
  /// Writes null if there is no value.
  template <class T>
  JsonWriter& value(const std::optional<T>& maybe) {
    return maybe ? value(*maybe) : value(nullptr);
  }
  /// Writes a key and its value.
  template <class T>
  JsonWriter& member(std::string_view name, const T& what) {
    return key(name).value(what);
  }

  /// The complete text. @error internal: an array or object is still open, or nothing was written.
  std::string text() &&;

 private:
  struct Level {
    char closing;
    bool empty = true;
  };
  JsonWriter& begin(char opening);
  JsonWriter& end(char closing);
  JsonWriter& raw(std::string_view text);
  JsonWriter& signed_value(std::int64_t number);
  JsonWriter& unsigned_value(std::uint64_t number);
  void before_value();
  void separate();
  void new_line();

  std::string out_;
  std::vector<Level> open_;
  std::size_t indent_;
  bool have_key_ = false;
  bool done_ = false;
};

}  // namespace meshard

// String building without <format> (missing in g++ 12) and without streams (slow to compile and to
// run).
#pragma once
#include <charconv>
#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "meshard/base/print.h"

namespace meshard {

/// Appends the text of a value to a string. Accepts text, a character, a bool (`true`/`false`), a
/// number, or anything with `to_string()`. Floating-point numbers print in the shortest form that
/// reads back to the same value.
inline void append(std::string& out, std::string_view text) { out.append(text); }
inline void append(std::string& out, const char* text) { out.append(text); }
inline void append(std::string& out, char character) { out.push_back(character); }
inline void append(std::string& out, bool value) { out.append(value ? "true" : "false"); }

template <class T>
requires((std::integral<T> || std::floating_point<T>)&&!std::same_as<T, bool> &&
         !std::same_as<T, char>) void append(std::string& out, T number) {
  char buffer[48];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, number);
  (void)error;
  out.append(buffer, end);
}

template <class T>
requires requires(const T& value) {
  { value.to_string() } -> std::convertible_to<std::string>;
}
void append(std::string& out, const T& value) { out.append(value.to_string()); }

/// Appends the texts of several values.
template <class... Parts>
requires(sizeof...(Parts) > 1) void append(std::string& out, const Parts&... parts) {
  (append(out, parts), ...);
}

/// Concatenates all arguments: `cat("dimension ", 1, " = ", 8)` is "dimension 1 = 8".
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string out;
  (append(out, parts), ...);
  return out;
}

/// Concatenates the elements of a range, printed as `append` prints them, with `separator` between.
template <class Range>
std::string join(const Range& range, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& element : range) {
    if (!first) out.append(separator);
    first = false;
    append(out, element);
  }
  return out;
}

}  // namespace meshard

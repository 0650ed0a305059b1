// A location in the user's code. Not std::source_location, because clang 14 lacks it.
// Error (error.h) keeps that of the failed call, and prints it first.
#pragma once
#include <cstdint>
#include <string>

#include "meshard/base/print.h"

namespace meshard {

/// A value: file, line and function of a call. Cheap to copy; the strings have static storage.
///
/// Declare it as the last, defaulted parameter to capture the caller's location: `void f(int x,
/// SourceLocation where = SourceLocation::current());`
struct SourceLocation {
  const char* file = "";
  const char* function = "";
  std::uint32_t line = 0;
  /// Whether the op was recorded by the derivative of the call on this line.
  bool is_derivative = false;

  /// The location of the call that evaluates this default argument.
  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          const char* function = __builtin_FUNCTION(),
                                          std::uint32_t line = __builtin_LINE()) {
    return {file, function, line};
  }

  /// False if default-constructed: the location is unknown.
  constexpr bool known() const { return line != 0; }

  /// The same line, for the ops of the call's derivative.
  constexpr SourceLocation of_derivative() const { return {file, function, line, true}; }

  /// `file.cc:42`, without the folders of the path. Empty if unknown.
  std::string to_string() const;
};

}  // namespace meshard

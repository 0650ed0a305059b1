// A place in the user's code. Own type: clang 14 lacks std::source_location, and eight bytes less
// per recorded node matter.
#pragma once
#include <cstdint>
#include <string>

namespace meshard {

/// A value: file, line and function of a call. Cheap to copy; the strings have static storage.
///
/// Take it as the last, defaulted parameter, so that it is the caller's place:
/// `void f(int x, SourceLocation where = SourceLocation::current());`
struct SourceLocation {
  const char* file = "";
  const char* function = "";
  std::uint32_t line = 0;

  /// The place of the call that evaluates this default argument.
  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          const char* function = __builtin_FUNCTION(),
                                          std::uint32_t line = __builtin_LINE()) {
    return {file, function, line};
  }

  /// False for a default-made one: no place is known.
  constexpr bool known() const { return line != 0; }

  /// `file.cc:42`; the folders of the path are dropped. Empty when unknown.
  std::string to_string() const;
};

}  // namespace meshard

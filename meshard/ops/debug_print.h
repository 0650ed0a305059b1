// debug_print: prints values while a program runs.
#pragma once
#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The format of debug_print(), and the caller's line. Created implicitly; valid during the call.
struct DebugFormat {
  DebugFormat(const char* format, SourceLocation place = SourceLocation::current())  // NOLINT
      : text(format), where(place) {}
  DebugFormat(std::string_view format,
              SourceLocation place = SourceLocation::current())  // NOLINT: implicit
      : text(format), where(place) {}
  DebugFormat(const std::string& format,
              SourceLocation place = SourceLocation::current())  // NOLINT: implicit
      : text(format), where(place) {}

  std::string_view text;
  SourceLocation where;
};

}  // namespace meshard

namespace meshard::internal {
void debug_print(const DebugFormat& format, std::span<const In> values);
}  // namespace meshard::internal

namespace meshard {

/// Prints a line with the elements of tensors when the program runs; `{}` in the format is replaced
/// by the next value, `{{` and `}}` by a brace. JAX calls this jax.debug.print.
///
/// Outside of jit, vmap and manual functions, the values are computed and printed at once. Inside,
/// the program prints them each time it runs: once for each execution of a loop's body, only in the
/// branch that is taken, once for each member of a batch (vmap), and possibly again where
/// checkpoint() recomputes the forward pass. Derivatives print the values of the forward pass. The
/// lines of one program may appear in any order, from a thread of the plugin; sync() waits for
/// them.
///
/// A sharded value is printed whole, once. Inside a manual function, each device prints its local
/// value, after its device and its coordinates along the axes that the values vary over:
/// `[device 3, x=1] sum 2.5`. A value that does not vary is printed once.
///
/// The lines go to the standard output, or to the function set by set_debug_print_handler().
/// @code
/// auto f = jit([](Tensor x) {
///   debug_print("x = {}, sum {}", x, sum(x));
///   return x * 2;
/// });
/// sync(f(arange(3.0)));  // prints: x = [0, 1, 2], sum 3
/// @endcode
/// @error invalid argument: the number of `{}` differs from the number of values; another brace; a
/// function that returns no tensor. When the program is compiled, unimplemented on devices that
/// cannot call this process, which are all but CPUs.
template <class... Values>
void debug_print(const DebugFormat& format, const Values&... values) {
  const std::array<In, sizeof...(Values)> all{In(values, format.where)...};
  internal::debug_print(format, all);
}

/// Returns x; whenever x is computed, the values are printed as by debug_print().
/// @error as debug_print()
Tensor with_debug_print(In x, std::string_view format, const std::vector<Tensor>& values);

/// Receives each line of debug_print(), without its line break.
using DebugPrintHandler = std::function<void(const std::string& line)>;

/// Sets the function that receives the lines of debug_print(). It may be called from several
/// threads at once, and must not wait for tensors. An exception becomes the error of the launch.
/// An empty function, the default, prints to the standard output.
void set_debug_print_handler(DebugPrintHandler handler);

}  // namespace meshard

namespace meshard::internal {
/// Replaces each `{}` of a format by the next text. @pre the format is valid
std::string formatted(std::string_view format, std::span<const std::string> values);
/// The elements of an array, as debug_print() prints them.
std::string elements_text(const HostArray& array);
/// Passes a line to the handler.
void print_debug_line(const std::string& line);
/// Returns x; whenever it is computed, the values are computed too.
Tensor needing(In x, const std::vector<Tensor>& values);
}  // namespace meshard::internal

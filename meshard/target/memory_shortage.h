// Parses compilers' out-of-memory messages.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "meshard/base/error.h"

namespace meshard {

/// Value type: main-memory bytes that a program needs and that the device has.
struct MemoryShortage {
  std::int64_t needed = 0;
  std::int64_t available = 0;
  /// True if `needed` counts only temporaries, excluding arguments and results.
  bool temporaries_only = false;
  friend bool operator==(const MemoryShortage&, const MemoryShortage&) = default;
};

/// True if the compiler's message reports insufficient memory.
bool says_out_of_memory(std::string_view message);

/// The numbers in libtpu's out-of-memory messages; none if there are none. The messages are `the
/// total memory required for HLO temporaries (48.00G) exceeds available HBM (15.75G)` and `Used
/// 17.39G of 15.75G hbm`, with numbers rounded to two digits after the point (K, M, G: 2^10, 2^20,
/// 2^30).
std::optional<MemoryShortage> memory_shortage(std::string_view message);

/// The words before and after the target's name in an error.
struct CallErrorText {
  std::string_view before, after;
};
/// No handler is registered for the call.
inline constexpr CallErrorText kNoHandlerText{"No FFI handler registered for ", " on a platform"};
/// The call has an older interface, for which nothing can be registered.
inline constexpr CallErrorText kUntypedCallText{"untyped custom call to ", " for Host"};

/// The target that the error names, a part of its message; empty if it is another error.
std::string_view unhandled_call(const Error& error, const CallErrorText& text);

}  // namespace meshard

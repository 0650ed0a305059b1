// XLA's errors about custom calls that nothing implements.
#pragma once
#include <string_view>

#include "meshard/base/error.h"

namespace meshard {

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

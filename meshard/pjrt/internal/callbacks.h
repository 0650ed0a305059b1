// The user's callbacks: run where they may do what they like.
#pragma once
#include <functional>

namespace meshard::pjrt::internal {

/// Calls `call` soon, in a thread of our own. A plugin calls back from its threads, with locks of
/// its own held and from inside of its functions, ours among them: there a callback that launched,
/// waited or threw would deadlock or end the process. An exception becomes advice
/// (set_advice_handler()), as nobody is there to catch it.
void call_soon(std::function<void()> call) noexcept;

/// Returns when every callback that was given before is through.
/// @pre not in a callback
void finish_callbacks();

}  // namespace meshard::pjrt::internal

// Runs user callbacks on a thread where they may launch, wait and throw.
#pragma once
#include <functional>

namespace meshard::pjrt::internal {

/// Calls `call` soon, in a meshard thread. A plugin calls back from its own threads, while it holds
/// its locks, and from inside its functions, including those that meshard calls. A callback that
/// launched, waited or threw there would deadlock or abort the process. An exception becomes advice
/// (set_advice_handler()), since nobody could catch it.
void call_soon(std::function<void()> call) noexcept;

/// Returns after every callback that was passed earlier has finished.
/// @pre not called from a callback
void finish_callbacks();

}  // namespace meshard::pjrt::internal

// Callbacks of plugins: those of the user, and those of PJRT_Client_Create over a KeyValueStore.
#pragma once
#include <functional>

#include "meshard/pjrt/internal/c_api.h"
#include "meshard/pjrt/run_rules.h"

namespace meshard::pjrt::internal {

/// Calls `call` soon, in a meshard thread. A plugin calls back from its own threads, while it holds
/// its locks, and from inside its functions, including those that meshard calls. A callback that
/// launched, waited or threw there would deadlock or abort the process. An exception becomes advice
/// (set_advice_handler()), because no caller could catch it.
void call_soon(std::function<void()> call) noexcept;

/// Returns after every callback that was passed earlier has finished.
/// @pre not called from a callback
void finish_callbacks();

/// Sets the callbacks. @pre `store` outlives the client
void set_key_value_callbacks(PJRT_Client_Create_Args& args, KeyValueStore& store);

}  // namespace meshard::pjrt::internal

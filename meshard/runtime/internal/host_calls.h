// Serves the calls that compiled programs make to this process.
#pragma once
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/base/source_location.h"
#include "meshard/pjrt/client.h"
#include "meshard/quirks/quirks.h"

namespace meshard::internal {

/// Lets programs of this client print, call functions, and report NaNs.
/// @error unimplemented, naming the plugin, if it cannot call this process
Result<void> accept_host_calls(const pjrt::Client& client);

/// Lets programs of this client call the routines of LAPACK that a module's text calls, if
/// the client's devices are CPUs; on other platforms, the plugin reports missing routines.
/// @error as accept_lapack_call()
Result<void> accept_lapack_calls(const pjrt::Client& client, std::string_view module);

/// The quirks of a client. Without LAPACK, or if the client's programs cannot call it, its programs
/// compute factorizations themselves (Quirk::kLapackCalls).
QuirkSet quirks_here(const pjrt::Client& client);

}  // namespace meshard::internal

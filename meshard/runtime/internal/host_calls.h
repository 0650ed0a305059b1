// Serves the calls that compiled programs make to this process.
#pragma once
#include "meshard/base/result.h"
#include "meshard/base/source_location.h"
#include "meshard/pjrt/client.h"

namespace meshard::internal {

/// Lets programs of this client print, call functions, and report NaNs.
/// @error unimplemented, naming the plugin, if it cannot call this process
Result<void> accept_host_calls(const pjrt::Client& client);

}  // namespace meshard::internal

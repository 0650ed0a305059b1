// Which ops of an imported program need something that is not here.
#pragma once
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/pjrt/client.h"

namespace meshard {

/// Checks that a module calls only functions that compilers for this client have, and LAPACK on
/// CPUs, whose calls the client then handles.
/// @param module text or bytecode
/// @param several_platforms the module also has code for other platforms, which does not run
/// @error unimplemented, with the op, its source line and what would help; not found, with the
/// same: there is no LAPACK; data loss: the module is damaged
Result<void> prepare_calls(std::string_view module, const pjrt::Client& client,
                           bool several_platforms);

}  // namespace meshard

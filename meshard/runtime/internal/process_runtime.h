// The runtime of this process.
#pragma once
#include "meshard/runtime/internal/program_cache.h"
#include "meshard/runtime/internal/transfer_by_pieces.h"
#include "meshard/runtime/platforms.h"

namespace meshard {

/// Owner of the clients, of the compiled programs and of the prepared transfers. Passed down to
/// everything that places values or runs programs. It does not depend on the evaluator, so nothing
/// below the evaluator can call it.
struct Runtime {
  Platforms platforms;
  ProgramCache programs{platforms};
  PreparedTransfers transfers;
};

/// The runtime of the process. Only functions that users call, and the evaluator's installation,
/// use this; everything else is passed a runtime. Never destroyed: clients are in use, and tensors
/// with static storage exist, when the process ends.
Runtime& process_runtime();

}  // namespace meshard

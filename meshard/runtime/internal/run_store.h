// The run's store, as plugins use it to find their counterparts in other processes.
#pragma once
#include <memory>
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/pjrt/key_value_store.h"
#include "meshard/processes/processes.h"

namespace meshard::internal {

/// The store for the next client of `platform` in this process. Keys of different platforms, and of
/// clients before and after a restart of the runtime, do not meet. The plugin waits for a key as
/// long as it likes, but at most MESHARD_PROCESS_WAIT_SECONDS; the error then names the processes
/// that have not begun to create their client.
/// @error invalid argument for an invalid MESHARD_PROCESS_WAIT_SECONDS; the store's
Result<std::shared_ptr<pjrt::KeyValueStore>> store_for_client(Processes run,
                                                              std::string_view platform);

}  // namespace meshard::internal

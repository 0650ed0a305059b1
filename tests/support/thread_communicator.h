// A communicator between threads, for tests without several processes.
#pragma once
#include <chrono>
#include <memory>
#include <vector>

#include "meshard/processes/communicator.h"

namespace meshard {

/// Communicators of `size` threads of this process, which take the parts of the processes 0 to
/// size - 1. Each may be used by one thread at a time, except for exchange(). All members of a
/// group must pass the same operation, type and size; otherwise each of them receives an error that
/// names two that differ. A call fails if the other members do not make it within `limit`; calls
/// after it fail as well.
/// @pre size >= 1
std::vector<std::unique_ptr<ProcessCommunicator>> make_thread_communicators(
    int size, std::chrono::milliseconds limit = std::chrono::minutes(1));

}  // namespace meshard

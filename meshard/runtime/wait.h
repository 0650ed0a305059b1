// What sync() without arguments waits for.
#pragma once
#include <cstdint>

#include "meshard/pjrt/launch.h"

namespace meshard::internal {

/// Remembers a launch that its client does not count among those in flight, until it is through.
void remember_launch(pjrt::Launch launch);

/// Called after each launch: makes sure that the process waits for what is in flight before it
/// ends.
///
/// A plugin makes static objects when its programs are compiled and run first, and a process that
/// exits destroys them in the reverse order, while threads of the plugin may still use them. The
/// handler of std::atexit that waits must therefore be younger than they are: one is registered at
/// the launches number 1, 2, 4, 8, ...
void wait_at_exit(std::uint64_t launches);

/// Waits for every launch in flight: those that the client counts, and those remembered. Their
/// errors are for whoever uses the results.
void wait_for_launches();

}  // namespace meshard::internal

// What sync() without arguments waits for.
#pragma once
#include <cstdint>

namespace meshard::internal {

/// Called after each launch: makes sure that the process waits for what is in flight before it
/// ends.
///
/// A plugin makes static objects when its programs are compiled and run first, some of them in its
/// own threads, and a process that exits destroys them in the reverse order, while these threads
/// may still use them. If the main thread exits, an object of that thread waits: the C library
/// destroys it before all static objects. Handlers of std::atexit wait too, for threads that call
/// exit themselves and for launches in the destructors of static objects; since a handler must be
/// younger than what it is to save, one is registered at the launches number 1, 2, 4, 8, ...
void wait_at_exit(std::uint64_t launches);

/// Waits for every launch in flight. Their errors are for whoever uses the results.
void wait_for_launches();

/// Called before the error of a failed launch is thrown: what it should have computed of recorded
/// values is recorded again, so that the next who asks has it computed again.
void forget_failed_launches();

}  // namespace meshard::internal

// Waits that Ctrl-C ends.
#pragma once
#include <nanobind/nanobind.h>

#include <functional>
#include <span>

#include "meshard/graph/tensor.h"

namespace meshard::python {

/// Computes tensors and waits for them, without the interpreter's lock. In the main thread, signal
/// handlers of Python run while it waits; what they raise (KeyboardInterrupt) ends the wait, and
/// the work goes on in the background.
/// @pre the lock is held @error as internal::sync_tensors(); what a signal handler raises
void wait_for(std::span<const Tensor> tensors, SourceLocation where);

/// Runs a function that waits, without the lock. In the main thread it runs on another thread, and
/// a signal handler that raises ends the wait; the function then still runs to its end, and its
/// error is lost.
/// @pre the lock is held; the function owns what it uses, and needs no state of this thread
/// @error what the function throws; what a signal handler raises
void run_waiting(std::function<void()> function);

/// Raises what Python's signal handlers raise. Only the main thread runs them.
/// @pre the lock is held
void check_signals();

/// Called when the interpreter ends. If a compile still runs, for which nobody waits any more, the
/// process will end without waiting for it.
void end_before_running_compiles();

/// Lets the compiles of the main thread run on another thread, so that a signal handler can end the
/// wait: the compile goes on, and its program comes into the cache. Adds what shows compiles. Loops
/// that run in parts while they are recorded do so without the lock.
void bind_compiles(nanobind::module_& module);

}  // namespace meshard::python

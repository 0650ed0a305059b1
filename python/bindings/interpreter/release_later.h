// References to Python objects from threads that may not hold the interpreter's lock.
#pragma once
#include <nanobind/nanobind.h>

#include <functional>
#include <memory>

namespace meshard::python {

/// Runs `release` soon on a thread that holds the interpreter's lock; never if the interpreter ends
/// first. May be called from any thread, also from the plugin's, which must not wait for the lock.
void release_later(std::function<void()> release);

/// Runs what release_later() collected. @pre the lock is held
void release_collected();

/// A shared reference to a Python object that may be copied and dropped without the lock.
using ObjectRef = std::shared_ptr<PyObject>;
/// @pre the lock is held
ObjectRef share(nanobind::object object);

}  // namespace meshard::python

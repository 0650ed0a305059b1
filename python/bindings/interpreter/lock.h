// The interpreter's lock. Use these classes instead of nanobind's: at the end of the interpreter,
// Python ends a thread that asks for the lock, by unwinding it, and C++ functions that must not be
// unwound would then end the process.
#pragma once
#include <nanobind/nanobind.h>

namespace meshard::python {

/// While alive, this thread does not hold the lock. Once the interpreter ends, a thread other than
/// the main one stops for good where it begins or ends such a scope. @pre the lock is held
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
  bool is_counted_ = false;
  int held_before_;
};

/// While alive, this thread holds the lock, which it may have held before: for functions of Python
/// that C++ calls, also in threads of the plugin.
/// @error cancelled: the interpreter has ended, and this is not its main thread
class Locked {
 public:
  Locked();
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
  int held_before_;
};

/// Whether this thread holds the lock.
bool holds_lock();

/// Called by the main thread at the end of the interpreter: stops other threads of Python in the
/// library, lets `finish` end the work in flight, whose callbacks still get the lock, and then
/// gives it to no other thread in C++. @pre the lock is held
void end_interpreter(void (*finish)());

/// True in the thread that runs Python's signal handlers and ends the interpreter.
bool is_main_thread();
/// Sets that thread. Called once. @pre the lock is held
void find_main_thread();

}  // namespace meshard::python

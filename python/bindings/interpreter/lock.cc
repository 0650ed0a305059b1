#include "python/bindings/interpreter/lock.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "meshard/base/error.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

// How long the end of the interpreter waits for calls of other threads, which may wait for
// anything.
constexpr std::chrono::seconds kLongestCall{1};

std::atomic<unsigned long> main_thread{0};
std::atomic<bool> is_ending{false};  // threads of Python stop
std::atomic<bool> is_ended{false};   // nobody gets the lock
std::atomic<int> calls{0};           // threads of Python without the lock, in C++
std::atomic<int> asking{0};          // threads that ask for the lock, in C++
thread_local int locked_depth = 0;   // functions of Python that this thread runs for C++
// Whether this thread holds the lock: 1 or 0, or -1 outside of Locked and Unlocked.
thread_local int held = -1;

[[noreturn]] void stop_for_good() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Counts this thread as one that asks for the lock, unless the interpreter has ended.
bool begin_asking() {
  asking.fetch_add(1);
  if (!is_ended.load() || is_main_thread()) return true;
  asking.fetch_sub(1);
  return false;
}

void wait_until_none(const std::atomic<int>& count, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  PyThreadState* state = PyEval_SaveThread();
  while (count.load() > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  PyEval_RestoreThread(state);
}

}  // namespace

Unlocked::Unlocked() {
  // A function that C++ called has to return, for its program to end.
  is_counted_ = locked_depth == 0 && !is_main_thread();
  if (is_counted_) calls.fetch_add(1);
  const bool stops = is_counted_ && is_ending.load();
  if (stops) calls.fetch_sub(1);
  state_ = PyEval_SaveThread();
  held_before_ = std::exchange(held, 0);
  if (stops) stop_for_good();
}

Unlocked::~Unlocked() {
  const bool may_ask = begin_asking();
  if (is_counted_) calls.fetch_sub(1);
  if (!may_ask) stop_for_good();
  if (is_counted_ && is_ending.load()) {
    asking.fetch_sub(1);
    stop_for_good();
  }
  PyEval_RestoreThread(state_);
  held = held_before_;
  asking.fetch_sub(1);
}

Locked::Locked() {
  if (!begin_asking()) throw Error(ErrorCode::kCancelled, "[python] the interpreter has ended");
  state_ = PyGILState_Ensure();
  asking.fetch_sub(1);
  held_before_ = std::exchange(held, 1);
  ++locked_depth;
}

Locked::~Locked() {
  --locked_depth;
  held = held_before_;
  PyGILState_Release(state_);
}

bool holds_lock() { return held >= 0 ? held == 1 : PyGILState_GetThisThreadState() != nullptr; }

void end_interpreter(void (*finish)()) {
  is_ending = true;
  wait_until_none(calls, kLongestCall);
  finish();
  is_ended = true;
  wait_until_none(asking, std::chrono::hours(1));
}

bool is_main_thread() { return PyThread_get_thread_ident() == main_thread.load(); }

void find_main_thread() {
  // The thread that imports threading first is its main one; the module takes time to import.
  nb::dict modules = nb::borrow<nb::dict>(PyImport_GetModuleDict());
  if (!modules.contains("threading")) {
    main_thread = PyThread_get_thread_ident();
    return;
  }
  nb::object thread = nb::module_::import_("threading").attr("main_thread")();
  main_thread = nb::cast<unsigned long>(nb::object(thread.attr("ident")));
}

}  // namespace meshard::python

// Shared by the sources of the faulty plugin.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "pjrt/pjrt_c_api.h"
#include "tests/faulty_plugin/control.h"

namespace faulty {

/// An error; code 0 means none.
struct Problem {
  int code = 0;
  std::string message;
  /// The event has not fired, and its dependents wait until events are released.
  bool stuck = false;
  bool any() const { return code != 0 || stuck; }
};

/// An error that the real plugin does not know.
struct OwnError {
  Problem problem;
};

/// An event that wraps a real one and waits for it before it reports its error. A stuck event fires
/// when it is released.
struct OwnEvent {
  PJRT_Event* real = nullptr;
  Problem problem;
  bool stuck = false;
  std::vector<std::pair<PJRT_Event_OnReadyCallback, void*>> callbacks = {};  // of a stuck event
};

struct Call {
  const char* entry;
  bool gives_event;
};

struct State {
  std::mutex mutex;
  std::condition_variable released;

  FaultKind kind = kFaultNone;
  int call = 0, device = -1, milliseconds = 0;
  std::string entry;
  Problem problem;
  int matched = 0, hits = 0, launches = 0;
  const char* hit_entry = "";
  std::vector<Call> calls;
  std::map<std::string, int, std::less<>> counts;

  std::unordered_set<const void*> errors, events;
  /// Buffers without a value, because the launch or transfer that should have filled them failed.
  std::unordered_map<const PJRT_Buffer*, Problem> bad_buffers;
};

State& state();
/// The real plugin's table, loaded at the first call; nullptr if that fails.
const PJRT_Api* real();

PJRT_Error* make_error(const Problem& problem);
/// Makes an event that wraps `real`.
PJRT_Event* make_event(PJRT_Event* real, const Problem& problem, bool stuck);
bool is_own(const PJRT_Error* error);
bool is_own(const PJRT_Event* event);

/// What to do with a call that has been counted.
struct Decision {
  FaultKind kind = kFaultNone;
  Problem problem = {};
  int device = -1, milliseconds = 0;
};
/// Counts a call. `rows`: the number of devices that it launches on. `devices`: the ids of the
/// devices that it applies to.
Decision enter(const char* entry, bool can_fail, bool gives_event, std::size_t rows,
               const std::vector<int>& devices);

void free_real_error(PJRT_Error* error);
int id_of(PJRT_Device* device);
std::vector<int> devices_of(PJRT_LoadedExecutable_Execute_Args* args);
int device_of(PJRT_Buffer* buffer);

/// The error and event entries for our own objects.
PJRT_Error* event_destroy(PJRT_Event_Destroy_Args* args);
PJRT_Error* event_is_ready(PJRT_Event_IsReady_Args* args);
PJRT_Error* event_error(PJRT_Event_Error_Args* args);
PJRT_Error* event_await(PJRT_Event_Await_Args* args);
PJRT_Error* event_on_ready(PJRT_Event_OnReady_Args* args);
PJRT_Error* error_get_code(PJRT_Error_GetCode_Args* args);
void error_destroy(PJRT_Error_Destroy_Args* args);
void error_message(PJRT_Error_Message_Args* args);

}  // namespace faulty

// Errors and events of the faulty plugin itself, and the entries that accept both kinds.
#include "tests/faulty_plugin/state.h"

#define EXPORT __attribute__((visibility("default")))

namespace faulty {
namespace {

const OwnError* own(const PJRT_Error* error) {
  return is_own(error) ? reinterpret_cast<const OwnError*>(error) : nullptr;
}
OwnEvent* own(PJRT_Event* event) {
  return is_own(event) ? reinterpret_cast<OwnEvent*>(event) : nullptr;
}

bool is_stuck(const OwnEvent& event) {
  std::lock_guard lock(state().mutex);
  return event.stuck;
}

PJRT_Error* error_of(const OwnEvent& event) {
  return event.problem.code == 0 ? nullptr : make_error(event.problem);
}

// Waits for the real event. Returns its error if ours has none.
PJRT_Error* await(const OwnEvent& event) {
  {
    std::unique_lock lock(state().mutex);
    state().released.wait(lock, [&] { return !event.stuck; });
  }
  if (event.real == nullptr) return error_of(event);
  PJRT_Event_Await_Args args{};
  args.struct_size = PJRT_Event_Await_Args_STRUCT_SIZE;
  args.event = event.real;
  PJRT_Error* error = real()->PJRT_Event_Await(&args);
  if (event.problem.code == 0) return error;
  free_real_error(error);
  return error_of(event);
}

struct Waiting {
  Problem problem;
  PJRT_Event_OnReadyCallback callback;
  void* user;
};

// Fires our event when the real event fires.
void pass_on(PJRT_Error* error, void* argument) {
  auto* waiting = static_cast<Waiting*>(argument);
  if (waiting->problem.code != 0) {
    free_real_error(error);
    error = make_error(waiting->problem);
  }
  waiting->callback(error, waiting->user);
  delete waiting;
}

PJRT_Error* call_when_ready(const OwnEvent& event, PJRT_Event_OnReadyCallback callback,
                            void* user) {
  if (event.real == nullptr) {
    callback(error_of(event), user);
    return nullptr;
  }
  auto* waiting = new Waiting{event.problem, callback, user};
  PJRT_Event_OnReady_Args args{};
  args.struct_size = PJRT_Event_OnReady_Args_STRUCT_SIZE;
  args.event = event.real;
  args.callback = pass_on;
  args.user_arg = waiting;
  PJRT_Error* error = real()->PJRT_Event_OnReady(&args);
  if (error != nullptr) delete waiting;
  return error;
}

}  // namespace

PJRT_Error* event_destroy(PJRT_Event_Destroy_Args* args) {
  OwnEvent* event = own(args->event);
  if (event == nullptr) return real()->PJRT_Event_Destroy(args);
  PJRT_Event* inner = event->real;
  {
    std::lock_guard lock(state().mutex);
    state().events.erase(event);
  }
  delete event;
  if (inner == nullptr) return nullptr;
  PJRT_Event_Destroy_Args destroy = *args;
  destroy.event = inner;
  return real()->PJRT_Event_Destroy(&destroy);
}

PJRT_Error* event_is_ready(PJRT_Event_IsReady_Args* args) {
  OwnEvent* event = own(args->event);
  if (event == nullptr) return real()->PJRT_Event_IsReady(args);
  if (is_stuck(*event) || event->real == nullptr) {
    args->is_ready = !is_stuck(*event);
    return nullptr;
  }
  PJRT_Event_IsReady_Args ask = *args;
  ask.event = event->real;
  PJRT_Error* error = real()->PJRT_Event_IsReady(&ask);
  args->is_ready = ask.is_ready;
  return error;
}

PJRT_Error* event_error(PJRT_Event_Error_Args* args) {
  OwnEvent* event = own(args->event);
  return event == nullptr ? real()->PJRT_Event_Error(args) : error_of(*event);
}

PJRT_Error* event_await(PJRT_Event_Await_Args* args) {
  OwnEvent* event = own(args->event);
  return event == nullptr ? real()->PJRT_Event_Await(args) : await(*event);
}

PJRT_Error* event_on_ready(PJRT_Event_OnReady_Args* args) {
  OwnEvent* event = own(args->event);
  if (event == nullptr) return real()->PJRT_Event_OnReady(args);
  {
    std::lock_guard lock(state().mutex);
    if (event->stuck) {
      event->callbacks.emplace_back(args->callback, args->user_arg);
      return nullptr;
    }
  }
  return call_when_ready(*event, args->callback, args->user_arg);
}

PJRT_Error* error_get_code(PJRT_Error_GetCode_Args* args) {
  const OwnError* error = own(args->error);
  if (error == nullptr) return real()->PJRT_Error_GetCode(args);
  args->code = static_cast<PJRT_Error_Code>(error->problem.code);
  return nullptr;
}

void error_destroy(PJRT_Error_Destroy_Args* args) {
  const OwnError* error = own(args->error);
  if (error == nullptr) return real()->PJRT_Error_Destroy(args);
  {
    std::lock_guard lock(state().mutex);
    state().errors.erase(error);
  }
  delete error;
}

void error_message(PJRT_Error_Message_Args* args) {
  const OwnError* error = own(args->error);
  if (error == nullptr) return real()->PJRT_Error_Message(args);
  args->message = error->problem.message.data();
  args->message_size = error->problem.message.size();
}

}  // namespace faulty

extern "C" {

EXPORT void faulty_release_events() {
  using namespace faulty;
  struct Released {
    OwnEvent event;  // a copy: the caller may destroy its own as soon as it fires
    std::vector<std::pair<PJRT_Event_OnReadyCallback, void*>> callbacks;
  };
  std::vector<Released> released;
  {
    std::lock_guard lock(state().mutex);
    for (const void* each : state().events) {
      auto* event = const_cast<OwnEvent*>(static_cast<const OwnEvent*>(each));
      if (!event->stuck) continue;
      event->stuck = false;
      released.push_back({*event, std::move(event->callbacks)});
    }
    std::erase_if(state().bad_buffers, [](const auto& each) { return each.second.stuck; });
  }
  state().released.notify_all();
  for (const Released& each : released)
    for (auto [callback, user] : each.callbacks)
      free_real_error(call_when_ready(each.event, callback, user));
}
}

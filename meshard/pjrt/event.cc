// Tested in tests/plugin/pjrt_conformance_test.cc.
#include "meshard/pjrt/event.h"

#include <memory>
#include <string>
#include <utility>

#include "meshard/pjrt/internal/await.h"
#include "meshard/pjrt/internal/c_api.h"
#include "meshard/pjrt/internal/callbacks.h"

namespace meshard::pjrt {
namespace {

struct ReadyCallback {
  const PJRT_Api* api;
  std::string entry;
  std::function<void(const Result<void>&)> call;
};

void call_ready(PJRT_Error* error, void* argument) {
  std::unique_ptr<ReadyCallback> callback(static_cast<ReadyCallback*>(argument));
  callback->call(internal::take_error(callback->api, error, callback->entry));
}

}  // namespace

Result<void> Event::await() const {
  if (own_.raw == nullptr) return {};
  return internal::await_events(own_.api, {&own_.raw, 1}, "PJRT_Event_Await", {});
}

Result<bool> Event::is_ready() const {
  if (own_.raw == nullptr) return true;
  return internal::is_ready(own_.api, own_.raw);
}

Result<void> Event::on_ready(std::function<void(const Result<void>&)> callback,
                             CallbackThread thread) const {
  if (thread == CallbackThread::kOurs) callback = internal::in_our_thread(std::move(callback));
  if (own_.raw == nullptr) {
    callback({});
    return {};
  }
  return internal::call_when_ready(own_.api, own_.raw, "PJRT_Event_OnReady", std::move(callback));
}

std::function<void(const Result<void>&)> internal::in_our_thread(
    std::function<void(const Result<void>&)> callback) {
  return [callback = std::move(callback)](const Result<void>& outcome) mutable {
    call_soon([callback = std::move(callback), outcome] { callback(outcome); });
  };
}

Result<void> internal::call_when_ready(const PJRT_Api* api, PJRT_Event* event,
                                       std::string_view entry,
                                       std::function<void(const Result<void>&)> callback) {
  auto owned =
      std::make_unique<ReadyCallback>(ReadyCallback{api, std::string(entry), std::move(callback)});
  MESHARD_PJRT_ARGS(PJRT_Event_OnReady, args);
  args.event = event;
  args.callback = call_ready;
  args.user_arg = owned.get();
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(api, PJRT_Event_OnReady, args));
  (void)owned.release();  // call_ready frees it
  return {};
}

}  // namespace meshard::pjrt

// The completion of an asynchronous operation of a plugin.
#pragma once
#include <functional>
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/pjrt/client_ref.h"

namespace meshard::pjrt {

namespace internal {
/// Calls `callback` once with the outcome of an event. An error is attributed to `entry`. The call
/// comes from a thread of the plugin, or immediately from this thread if the event has already
/// completed.
/// @pre the callback does not throw, wait or launch: the plugin may hold locks
Result<void> call_when_ready(const PJRT_Api* api, PJRT_Event* event, std::string_view entry,
                             std::function<void(const Result<void>&)> callback);
/// A callback that passes `callback` to a thread of meshard.
std::function<void(const Result<void>&)> in_our_thread(
    std::function<void(const Result<void>&)> callback);
}  // namespace internal

/// Which thread runs a callback: kOurs, a meshard thread, where it may launch, wait and throw
/// (exceptions become advice); kPlugins, the plugin's thread, immediately, where it may do none of
/// these.
enum class CallbackThread { kOurs, kPlugins };

/// Move-only owner of an event. An empty one represents an operation that is already done. await()
/// returns the event's error, if any. Dropping an event does not wait.
class Event {
 public:
  Event() = default;
  Event(ClientRef client, const PJRT_Api* api, PJRT_Event* raw)
      : own_(std::move(client), api, raw) {}

  /// Blocks until the event completes. A wait that is too long is reported (base/stall_report.h).
  /// @error the error of the operation that the event represents
  Result<void> await() const;
  /// Whether it completed (or failed); does not block.
  Result<bool> is_ready() const;
  /// Calls `callback` once with the outcome, after the event completes.
  Result<void> on_ready(std::function<void(const Result<void>&)> callback,
                        CallbackThread thread = CallbackThread::kOurs) const;

  PJRT_Event* raw() const { return own_.raw; }

 private:
  internal::Owned<PJRT_Event> own_;
};

}  // namespace meshard::pjrt

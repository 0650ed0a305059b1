// Something the plugin will have done.
#pragma once
#include <functional>
#include <optional>
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/pjrt/client_ref.h"

struct PJRT_Api;
struct PJRT_Event;

namespace meshard::pjrt {

namespace internal {
/// Calls `callback` once with the outcome of an event, whose error is named `entry`: from a thread
/// of the plugin, or at once from this one if it already happened.
/// @pre the callback does not throw, wait or launch: the plugin may hold locks
Result<void> call_when_ready(const PJRT_Api* api, PJRT_Event* event, std::string_view entry,
                             std::function<void(const Result<void>&)> callback);
/// A callback that hands `callback` to a thread of ours.
std::function<void(const Result<void>&)> in_our_thread(
    std::function<void(const Result<void>&)> callback);
}  // namespace internal

/// Who runs a callback: a thread of ours, where it may launch, wait and throw (what it throws
/// becomes advice), or the plugin's own, at once, where it may not.
enum class CallbackThread { kOurs, kPlugins };

/// Move-only owner of an event. An empty one is something that is done already. The event's error,
/// if any, is a value of await(). Dropping an event waits for nothing.
class Event {
 public:
  Event() = default;
  Event(ClientRef client, const PJRT_Api* api, PJRT_Event* raw)
      : client_(std::move(client)), api_(api), raw_(raw) {}
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();

  /// Blocks until it happened. A wait that is too long is reported (base/stall.h).
  /// @error what went wrong in the work that the event stands for
  Result<void> await() const;
  /// Whether it happened (or failed); does not block.
  Result<bool> is_ready() const;
  /// Calls `callback` once with the outcome, after it happened.
  Result<void> on_ready(std::function<void(const Result<void>&)> callback,
                        CallbackThread thread = CallbackThread::kOurs) const;

  PJRT_Event* raw() const { return raw_; }

 private:
  ClientRef client_;
  const PJRT_Api* api_ = nullptr;
  PJRT_Event* raw_ = nullptr;
};

}  // namespace meshard::pjrt

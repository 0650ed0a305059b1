// Something the plugin will have done.
#pragma once
#include <functional>
#include <optional>

#include "meshard/base/result.h"
#include "meshard/pjrt/client_ref.h"

struct PJRT_Api;
struct PJRT_Event;

namespace meshard::pjrt {

namespace internal {
/// Calls `callback` once with the outcome of an event, as Event::on_ready says.
Result<void> call_when_ready(const PJRT_Api* api, PJRT_Event* event,
                             std::function<void(const Result<void>&)> callback);
}  // namespace internal

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

  /// Blocks until it happened.
  /// @error what went wrong in the work that the event stands for
  Result<void> await() const;
  /// Whether it happened (or failed); does not block.
  Result<bool> is_ready() const;
  /// Calls `callback` once with the outcome: from a thread of the plugin, or at once from this one
  /// if it already happened. The callback must not throw and must not wait for other events.
  Result<void> on_ready(std::function<void(const Result<void>&)> callback) const;

  PJRT_Event* raw() const { return raw_; }

 private:
  ClientRef client_;
  const PJRT_Api* api_ = nullptr;
  PJRT_Event* raw_ = nullptr;
};

}  // namespace meshard::pjrt

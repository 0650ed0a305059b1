// The completion of one launch.
#pragma once
#include <cstddef>
#include <functional>
#include <utility>

#include "meshard/base/result.h"
#include "meshard/pjrt/client_ref.h"
#include "meshard/pjrt/event.h"

namespace meshard::pjrt {

namespace internal {
struct LaunchRecord;
void drop_launch(LaunchRecord* record) noexcept;
}  // namespace internal

/// Move-only handle on one launch: when every device is through. Dropping it waits for nothing. An
/// empty one (of a launch that was not tracked) counts as done.
class Launch {
 public:
  Launch() = default;
  Launch(Launch&& other) noexcept
      : client_(std::move(other.client_)), record_(std::exchange(other.record_, nullptr)) {}
  Launch& operator=(Launch&& other) noexcept {
    std::swap(client_, other.client_);
    std::swap(record_, other.record_);
    return *this;
  }
  ~Launch() {
    if (record_ != nullptr) internal::drop_launch(record_);
  }

  /// Blocks until every device is through. A wait that is too long is reported (base/stall.h).
  /// @error the first device's error, naming program and devices; after one device failed, the
  /// others, whose partner it may have been, get a second
  Result<void> await() const;
  /// Whether every device is through; does not block.
  Result<bool> is_ready() const;
  /// Whether some device is through with an error, the others through or not; does not block.
  bool has_failed() const;
  /// Calls `callback` once when device number `device` of the launch is through, with its outcome.
  /// @error out of range if the launch has no such device; of an empty launch all are through
  Result<void> on_ready(std::size_t device, std::function<void(const Result<void>&)> callback,
                        CallbackThread thread = CallbackThread::kOurs) const;
  /// The number the plugin knows the launch by; 0 for an empty one.
  int id() const;

 private:
  friend class LoadedExecutable;
  Launch(ClientRef client, internal::LaunchRecord* record)
      : client_(std::move(client)), record_(record) {}
  ClientRef client_;
  internal::LaunchRecord* record_ = nullptr;
};

}  // namespace meshard::pjrt

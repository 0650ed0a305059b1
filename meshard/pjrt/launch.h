// The completion of one launch.
#pragma once
#include <utility>

#include "meshard/base/result.h"
#include "meshard/pjrt/client_ref.h"

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

  /// Blocks until every device is through.
  /// @error the first device's error
  Result<void> await() const;
  /// Whether every device is through; does not block.
  Result<bool> is_ready() const;
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

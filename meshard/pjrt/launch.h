// One launch of a program: its options, and the handle on its completion.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "meshard/base/function_ref.h"
#include "meshard/base/result.h"
#include "meshard/base/source_location.h"
#include "meshard/pjrt/client_ref.h"
#include "meshard/pjrt/event.h"

namespace meshard::pjrt {

namespace internal {
struct LaunchRecord;
void drop_launch(LaunchRecord* record) noexcept;
}  // namespace internal

/// Options of one launch.
struct LaunchOptions {
  /// Indices, ascending, of parameters that this launch must not consume although the program
  /// donates them. Their outputs use new memory.
  std::span<const std::int64_t> keep = {};
  /// Whether to return a handle on the launch's completion (default: true). Otherwise the handle is
  /// empty.
  bool track = true;
  /// The user's source line, for errors and for reports of launches that do not end.
  SourceLocation where = {};
  /// The id of the launch in the plugin (default 0: a new one, unique in this process).
  /// Programs over devices of several processes need the same one in all of them.
  int id = 0;
  /// If not null and the launch is not tracked: set to true if it had ended when the plugin's call
  /// returned. It is then not in flight, and its failure is an error of the call. Finding out takes
  /// 40 ns.
  bool* ended = nullptr;
};

/// Makes the plugin's calls of a launch device by device: calls `launch` with 0, ..., count - 1,
/// each once, in any order and threads. Returns when all have returned.
using DeviceLoop =
    FunctionRef<void(std::size_t count, const FunctionRef<void(std::size_t)>& launch)>;

/// Move-only handle on the completion of one launch on all devices. Dropping it does not wait. An
/// empty handle (of a launch that was not tracked) counts as done.
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

  /// Blocks until every device is done. A wait that is too long is reported (base/stall_report.h).
  /// @error the first device's error, naming program and devices. After one device fails, the
  /// others get one second, because they may wait for it in a collective.
  Result<void> await() const;
  /// Whether every device is done; does not block.
  Result<bool> is_ready() const;
  /// Whether some device has failed, even if others are still running; does not block.
  bool has_failed() const;
  /// Calls `callback` once with the outcome, when logical device `device` of the launch is done.
  /// @error out of range if the launch has no such device; an empty launch counts as done on all
  /// devices
  Result<void> on_ready(std::size_t device, std::function<void(const Result<void>&)> callback,
                        CallbackThread thread = CallbackThread::kOurs) const;
  /// The id of the launch in the plugin; 0 for an empty handle.
  int id() const;

 private:
  friend class LoadedExecutable;
  Launch(ClientRef client, internal::LaunchRecord* record)
      : client_(std::move(client)), record_(record) {}
  ClientRef client_;
  internal::LaunchRecord* record_ = nullptr;
};

}  // namespace meshard::pjrt

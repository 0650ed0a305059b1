// Waits for events of the plugin, and reports waits that are too long.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/pjrt/internal/c_api.h"

namespace meshard::pjrt {
class Device;
}

namespace meshard::pjrt::internal {

struct ClientState;

/// The purpose of a wait.
struct Awaited {
  /// Describes the wait in stall reports; called when one is due.
  std::string (*describe)(const void* subject) = nullptr;
  const void* subject = nullptr;
  /// If both are set, the wait ends with the error of a launch that failed on another device and
  /// will never complete on this one.
  ClientState* client = nullptr;
  const Device* device = nullptr;
};

/// Whether an event completed (or failed); does not wait.
Result<bool> is_ready(const PJRT_Api* api, PJRT_Event* event);

/// The outcome of an event; an error is attributed to `entry`. If it has not completed, waits
/// without a report.
Result<void> outcome_of(const PJRT_Api* api, PJRT_Event* event, std::string_view entry);

/// Waits until all of `events` complete. A wait that is too long is reported (base/stall_report.h).
/// After one has failed, the others get one second, because they may wait for the failed device
/// forever.
/// @error the first error of an event, attributed to `entry`; or the error of the launch that
/// prevents them from completing
Result<void> await_events(const PJRT_Api* api, std::span<PJRT_Event* const> events,
                          std::string_view entry, const Awaited& awaited);

}  // namespace meshard::pjrt::internal

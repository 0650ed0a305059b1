// Waiting for events of the plugin: not for ever without a word.
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

/// What a wait is for.
struct Awaited {
  /// For reports of stalls; called when one is due.
  std::string (*describe)(const void* subject) = nullptr;
  const void* subject = nullptr;
  /// If both are known: a launch that failed elsewhere and will never be through on this device
  /// ends the wait.
  ClientState* client = nullptr;
  const Device* device = nullptr;
};

/// Whether an event happened (or failed); does not wait.
Result<bool> is_ready(const PJRT_Api* api, PJRT_Event* event);

/// How an event ended, its error named `entry`. Waits without a word if it has not happened yet.
Result<void> outcome_of(const PJRT_Api* api, PJRT_Event* event, std::string_view entry);

/// Waits until all of `events` happened. A wait that is too long is reported (base/stall.h). After
/// one has failed the others get a second: partners of a failed part may never come.
/// @error the first error of an event, named `entry`; that of the launch which keeps them from
/// happening
Result<void> await_events(const PJRT_Api* api, std::span<PJRT_Event* const> events,
                          std::string_view entry, const Awaited& awaited);

}  // namespace meshard::pjrt::internal

// Where the processes that MPI has started meet: an address and a secret, made by process 0.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "meshard/processes/communicator.h"
#include "meshard/processes/internal/socket.h"

namespace meshard::internal {

/// The result of agree_on_meeting_point() in a process.
struct MeetingPoint {
  /// Where process 0 listens, from this process's point of view; the best first.
  std::vector<ProcessAddress> addresses;
  std::string secret;
  /// In process 0.
  std::optional<Listener> listener;
};

/// Called by all processes. Process 0 listens at a free port (of 127.0.0.1 if all processes are on
/// one machine), and sends the others its addresses and a random secret.
/// @error in all processes, if process 0 cannot listen; the communicator's
Result<MeetingPoint> agree_on_meeting_point(Communicator& communicator);

}  // namespace meshard::internal

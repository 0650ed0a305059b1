// How the processes of a run were started.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "meshard/processes/communicator.h"
#include "meshard/processes/internal/socket.h"
#include "meshard/processes/processes.h"

namespace meshard::internal {

enum class LaunchKind : std::uint8_t {
  kSingle,   ///< one process
  kMpi,      ///< by a launcher of MPI: rank and size come from MPI
  kAddress,  ///< by anything: the place of process 0 is given
};

/// A value: the launch of this process.
struct Launch {
  LaunchKind kind = LaunchKind::kSingle;
  // For kAddress:
  ProcessAddress address = {};
  int rank = 0;
  int count = 1;
  std::string secret = {};
  // For kMpi: the number of processes that the launcher says it has started, else 0, and the
  // variable.
  int announced = 0;
  std::string variable = {};
};

/// The value of an environment variable, or null.
using ReadVariable = std::function<const char*(const char*)>;

/// Reads options and environment.
/// @error invalid argument, naming what is missing or contradictory
Result<Launch> find_launch(const ProcessesOptions& options, const ReadVariable& variable);

// Where the processes that MPI has started meet: an address and a secret, made by process 0.

/// The result of agree_on_meeting_point() in one process.
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

// How the processes of a run were started.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "meshard/processes/launchers.h"
#include "meshard/processes/processes.h"

namespace meshard {

/// How the processes of a launch find each other.
enum class LaunchKind : std::uint8_t {
  kSingle,   ///< one process
  kMpi,      ///< by a launcher of MPI: rank and size come from MPI
  kAddress,  ///< by anything: the place of process 0 is known
};

/// A value: the launch of this process.
struct Launch {
  LaunchKind kind = LaunchKind::kSingle;
  /// `torchrun`, `MESHARD_PROCESS_ADDRESS`; empty: no launcher was recognized.
  std::string launcher = {};
  /// From which variables this is known: `RANK=1, WORLD_SIZE=4`.
  std::string variables = {};
  Collectives collectives = Collectives::kAutomatic;
  /// For kAddress, and for kMpi if the processes could also meet so: where process 0 listens, as
  /// `host:port` or the path of a Unix socket. `everywhere`: it listens at all addresses of its
  /// machine, because its own name may resolve to the loopback interface there.
  std::string address = {};
  bool everywhere = false;
  int rank = -1;  ///< -1: not known
  int local_rank = -1;
  int count = 1;
  std::string secret = {};
  /// For kMpi: the number of processes that the launcher says it has started, else 0, and the
  /// variable; and which MPI it belongs to.
  int announced = 0;
  std::string variable = {};
  MpiFamily family = MpiFamily::kAny;
};

/// Parses `automatic`, `mpi`, `gloo` or `none`.
/// @error invalid argument, naming the text and these
Result<Collectives> parse_collectives(std::string_view text);

/// Reads options and environment. What the options and MESHARD_PROCESS_* leave open comes from the
/// variables of JAX or of the launcher.
/// @error invalid argument, naming what is missing or contradictory, with the values
Result<Launch> find_launch(const ProcessesOptions& options, const ReadVariable& variable,
                           unsigned user);

}  // namespace meshard

// What launchers of several processes say in the environment.
#pragma once
#include <string>

namespace meshard::tool {

/// A value: how this process was started. Known before it has joined the run.
struct LaunchVariables {
  enum class Kind {
    kAlone,      ///< nothing is set
    kMpi,        ///< by a launcher of MPI
    kVariables,  ///< MESHARD_PROCESS_* are set
  } kind = Kind::kAlone;
  /// `mpirun (Open MPI)`, `srun`, `MESHARD_PROCESS_ADDRESS=node0:7000`
  std::string launcher;
  /// -1: not said.
  int rank = -1;
  /// The number of the process among those on its host; -1: not said.
  int local_rank = -1;
  /// The number of processes; 0: not said.
  int count = 0;

  /// Whether this process says what all processes on its host know. Without ranks: yes.
  bool speaks_for_host() const { return local_rank >= 0 ? local_rank == 0 : rank <= 0; }
};

LaunchVariables launch_variables();

}  // namespace meshard::tool

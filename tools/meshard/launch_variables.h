// What launchers of several processes say in the environment.
#pragma once
#include <string>
#include <vector>

#include "meshard/processes/launch.h"

namespace meshard::tool {

/// A value: how this process was started. Known before it has joined the run.
struct LaunchVariables {
  Launch launch;
  /// Why the variables are of no use; else empty.
  std::string problem;
  std::vector<LauncherFinding> findings;

  bool is_by_mpi() const { return launch.kind == LaunchKind::kMpi; }
  /// Whether this process says what all processes on its host know. Without ranks: yes.
  bool speaks_for_host() const {
    return launch.local_rank >= 0 ? launch.local_rank == 0 : launch.rank <= 0;
  }
};

LaunchVariables launch_variables();

}  // namespace meshard::tool

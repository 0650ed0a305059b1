// What the launchers of several processes say in the environment: one table of all of them.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/processes/mpi_communicator.h"

namespace meshard {

/// The value of an environment variable, or null.
using ReadVariable = std::function<const char*(const char*)>;

/// A value: what a launcher says about this process.
struct LauncherWords {
  std::string launcher = {};  ///< `torchrun`
  /// The variables and values that say so: `RANK=1, WORLD_SIZE=4`.
  std::string variables;
  bool by_mpi = false;  ///< MPI connects the processes
  MpiFamily family = MpiFamily::kAny;
  int rank = -1;  ///< -1: not said, as below
  int count = -1;
  std::string count_variable = {};
  int local_rank = -1;
  int local_count = -1;
  /// Where process 0 listens; empty if the variables do not say it.
  std::string address = {};
};

/// A value: whether a launcher was recognized.
struct LauncherFinding {
  std::string launcher;
  bool recognized = false;
  /// From which variables, or which of them are missing, or why another launcher goes first.
  std::string why = {};
};

/// A value: what the environment says.
struct Launchers {
  std::optional<LauncherWords> chosen;
  /// One of each launcher, in the order in which they are looked for.
  std::vector<LauncherFinding> findings;
};

/// Looks for the variables of all launchers. The innermost one counts: `srun torchrun`, and mpirun
/// in a job of Slurm, leave the variables of both. `user` is part of the names of Unix sockets.
/// @error invalid argument with the values, if the variables of a launcher contradict each other,
/// or torchrun's those of MPI
Result<Launchers> recognize_launchers(const ReadVariable& variable, unsigned user);

/// The number in a variable; -1 if it is not set.
/// @error invalid argument unless it is a number that a rank or a count can be
Result<int> process_number(const ReadVariable& variable, const char* name);

/// The first host of a list of Slurm: `n001` of `n[001-003,7],m1`.
std::string first_of_node_list(std::string_view list);

}  // namespace meshard

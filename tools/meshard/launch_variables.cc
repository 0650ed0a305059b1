// Tested in tools/meshard/check_doctor_processes.py.
#include "tools/meshard/launch_variables.h"

#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "meshard/base/cat.h"

namespace meshard::tool {
namespace {

std::string_view text_of(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

// The number in the first variable that has one.
int number_in(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names) {
    std::string_view text = text_of(name);
    int number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (!text.empty() && error == std::errc() && end == text.data() + text.size()) return number;
  }
  return otherwise;
}

std::string launcher_of_mpi() {
  if (!text_of("OMPI_COMM_WORLD_RANK").empty()) return "mpirun (Open MPI)";
  bool slurm = !text_of("SLURM_STEP_NUM_TASKS").empty();
  if (!text_of("PMIX_RANK").empty()) return slurm ? "srun with PMIx" : "a launcher with PMIx";
  if (!text_of("PMI_RANK").empty()) return slurm ? "srun with PMI" : "mpiexec (MPICH, Intel MPI)";
  return slurm ? "srun" : "";
}

}  // namespace

LaunchVariables launch_variables() {
  LaunchVariables launch;
  if (std::string_view address = text_of("MESHARD_PROCESS_ADDRESS"); !address.empty()) {
    launch.kind = LaunchVariables::Kind::kVariables;
    launch.launcher = cat("MESHARD_PROCESS_ADDRESS=", address);
    launch.rank = number_in({"MESHARD_PROCESS_RANK"}, -1);
    launch.count = number_in({"MESHARD_PROCESS_COUNT"}, 0);
    return launch;
  }
  // Incomplete variables are an error of initialize_processes(), which names what is missing.
  for (const char* name :
       {"MESHARD_PROCESS_RANK", "MESHARD_PROCESS_COUNT", "MESHARD_PROCESS_SECRET"})
    if (!text_of(name).empty()) {
      launch.kind = LaunchVariables::Kind::kVariables;
      launch.launcher = "MESHARD_PROCESS_*";
      return launch;
    }
  launch.launcher = launcher_of_mpi();
  if (launch.launcher.empty()) return launch;
  launch.kind = LaunchVariables::Kind::kMpi;
  launch.rank = number_in({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}, -1);
  launch.count = number_in({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}, 0);
  launch.local_rank =
      number_in({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}, -1);
  return launch;
}

}  // namespace meshard::tool

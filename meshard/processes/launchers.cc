// Tested in meshard/processes/launch_test.cc.
#include "meshard/processes/launchers.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "meshard/base/cat.h"
#include "meshard/processes/internal/member_text.h"
#include "meshard/processes/internal/socket.h"

namespace meshard {
namespace {

using internal::is_loopback;
using internal::read_number;

constexpr int kMostProcesses = 1 << 16;

/// An empty variable counts as not set.
std::string text_of(const ReadVariable& variable, const char* name) {
  const char* text = name != nullptr ? variable(name) : nullptr;
  return text != nullptr ? text : "";
}

/// What the functions of the table receive.
struct Surroundings {
  const ReadVariable& variable;
  const LauncherWords& words;
  unsigned user;

  std::string text(const char* name) const { return text_of(variable, name); }
  bool is_one_machine() const { return words.count > 0 && words.local_count == words.count; }
  /// A Unix socket of this user, which needs no secret.
  std::string socket(std::string name) const {
    for (char& each : name)
      if (!std::isalnum(static_cast<unsigned char>(each)) && each != '-') each = '_';
    return cat("/tmp/meshard-", user, "/", name.substr(0, 60));
  }
};

/// The agent of torchrun listens at MASTER_PORT itself.
Result<std::string> address_of_torchrun(const Surroundings& here) {
  std::string host = here.text("MASTER_ADDR"), port = here.text("MASTER_PORT");
  Result<std::int64_t> number = read_number(port);
  if (!number.ok() || *number < 1 || *number > 65534)
    return Error(ErrorCode::kInvalidArgument,
                 cat("[processes] MASTER_PORT=", port, " is not a port from 1 to 65534"));
  if (here.is_one_machine() || (here.words.local_count < 0 && is_loopback(host)))
    return here.socket(cat("torchrun-", port, "-", here.text("TORCHELASTIC_RUN_ID"), "-",
                           here.text("TORCHELASTIC_RESTART_COUNT")));
  if (host.find(':') != std::string::npos) host = cat('[', host, ']');
  return cat(host, ':', *number + 1);
}

// The ports above those that Linux gives to outgoing connections (net.ipv4.ip_local_port_range).
constexpr std::int64_t kFirstPort = 61000;
constexpr std::int64_t kPorts = 4500;

Result<std::string> address_of_slurm(const Surroundings& here) {
  std::string job = here.text("SLURM_JOB_ID"), step = here.text("SLURM_STEP_ID");
  std::string nodes = here.text("SLURM_STEP_NODELIST");
  if (here.text("SLURM_STEP_NUM_NODES") == "1") return here.socket(cat("slurm-", job, "-", step));
  Result<std::int64_t> job_number = read_number(job), step_number = read_number(step);
  if (nodes.empty() || !job_number.ok()) return std::string();
  std::int64_t mixed = *job_number * 16 + (step_number.ok() ? *step_number : 0);
  return cat(first_of_node_list(nodes), ':', kFirstPort + mixed % kPorts);
}

Result<std::string> address_of_open_mpi(const Surroundings& here) {
  std::string name = here.text("PMIX_NAMESPACE");
  if (!here.is_one_machine() || name.empty()) return std::string();
  return here.socket("mpi-" + name);
}

Result<std::string> no_address(const Surroundings&) { return std::string(); }

/// A launcher is recognized if all variables of `present` are set.
struct Launcher {
  const char* name;
  std::array<const char*, 4> present;
  bool by_mpi;
  MpiFamily family;
  const char* rank;
  const char* count;
  const char* local_rank;
  const char* local_count;
  Result<std::string> (*address)(const Surroundings&);
};

// From the innermost one. PMIx: Slurm with --mpi=pmix, PRRTE. A batch script of Slurm has no step.
constexpr std::array kLaunchers = {
    Launcher{"torchrun",
             {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"},
             false,
             MpiFamily::kAny,
             "RANK",
             "WORLD_SIZE",
             "LOCAL_RANK",
             "LOCAL_WORLD_SIZE",
             address_of_torchrun},
    Launcher{"mpirun (Open MPI)",
             {"OMPI_COMM_WORLD_RANK"},
             true,
             MpiFamily::kOpenMpi,
             "OMPI_COMM_WORLD_RANK",
             "OMPI_COMM_WORLD_SIZE",
             "OMPI_COMM_WORLD_LOCAL_RANK",
             "OMPI_COMM_WORLD_LOCAL_SIZE",
             address_of_open_mpi},
    Launcher{"srun with PMIx",
             {"PMIX_RANK", "SLURM_STEP_NUM_TASKS"},
             true,
             MpiFamily::kAny,
             "PMIX_RANK",
             "SLURM_STEP_NUM_TASKS",
             "SLURM_LOCALID",
             nullptr,
             address_of_slurm},
    Launcher{"srun with PMI",
             {"PMI_RANK", "SLURM_STEP_NUM_TASKS"},
             true,
             MpiFamily::kAny,
             "PMI_RANK",
             "SLURM_STEP_NUM_TASKS",
             "SLURM_LOCALID",
             nullptr,
             address_of_slurm},
    Launcher{"mpiexec (MPICH, Intel MPI)",
             {"PMI_RANK"},
             true,
             MpiFamily::kMpich,
             "PMI_RANK",
             "PMI_SIZE",
             "MPI_LOCALRANKID",
             "MPI_LOCALNRANKS",
             no_address},
    Launcher{"a launcher with PMIx",
             {"PMIX_RANK"},
             true,
             MpiFamily::kAny,
             "PMIX_RANK",
             nullptr,
             nullptr,
             nullptr,
             no_address},
    Launcher{"srun",
             {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
             false,
             MpiFamily::kAny,
             "SLURM_PROCID",
             "SLURM_STEP_NUM_TASKS",
             "SLURM_LOCALID",
             nullptr,
             address_of_slurm},
    Launcher{"an indexed Job of Kubernetes",
             {"JOB_COMPLETION_INDEX"},
             false,
             MpiFamily::kAny,
             "JOB_COMPLETION_INDEX",
             nullptr,
             nullptr,
             nullptr,
             no_address},
};

/// `RANK=1, WORLD_SIZE=4`, of those that are set.
std::string values_of(const ReadVariable& variable, const Launcher& launcher) {
  std::vector<const char*> names(launcher.present.begin(), launcher.present.end());
  for (const char* name :
       {launcher.rank, launcher.count, launcher.local_rank, launcher.local_count})
    if (name != nullptr && std::ranges::none_of(names, [&](const char* known) {
          return known != nullptr && std::string_view(known) == name;
        }))
      names.push_back(name);
  std::string list;
  for (const char* name : names)
    if (std::string text = text_of(variable, name); !text.empty())
      list += cat(list.empty() ? "" : ", ", name, "=", text);
  return list;
}

std::string missing_of(const ReadVariable& variable, const Launcher& launcher) {
  std::string list;
  for (const char* name : launcher.present)
    if (name != nullptr && text_of(variable, name).empty())
      list += cat(list.empty() ? "" : ", ", name);
  return list;
}

/// A local number must be less than its total, where both are said.
Result<void> check_number(const Launcher& launcher, const std::string& values, const char* name,
                          int number, const char* total_name, int total) {
  if (number < 0 || total < 0 || number < total) return {};
  return Error(ErrorCode::kInvalidArgument,
               cat("[processes] the variables of ", launcher.name, " contradict each other: ", name,
                   "=", number, " with ", total_name, "=", total, " (", values, ")"));
}

Result<LauncherWords> words_of(const ReadVariable& variable, const Launcher& launcher,
                               unsigned user) {
  LauncherWords words{.launcher = launcher.name,
                      .variables = values_of(variable, launcher),
                      .by_mpi = launcher.by_mpi,
                      .family = launcher.family};
  MESHARD_ASSIGN_OR_RETURN(words.rank, process_number(variable, launcher.rank));
  MESHARD_ASSIGN_OR_RETURN(words.count, process_number(variable, launcher.count));
  MESHARD_ASSIGN_OR_RETURN(words.local_rank, process_number(variable, launcher.local_rank));
  MESHARD_ASSIGN_OR_RETURN(words.local_count, process_number(variable, launcher.local_count));
  if (words.count >= 0) words.count_variable = launcher.count;
  const std::string& values = words.variables;
  MESHARD_RETURN_IF_ERROR(
      check_number(launcher, values, launcher.rank, words.rank, launcher.count, words.count));
  MESHARD_RETURN_IF_ERROR(check_number(launcher, values, launcher.local_rank, words.local_rank,
                                       launcher.local_count, words.local_count));
  if (words.count >= 0)
    MESHARD_RETURN_IF_ERROR(check_number(launcher, values, launcher.local_count,
                                         words.local_count - 1, launcher.count, words.count));
  MESHARD_ASSIGN_OR_RETURN(words.address, launcher.address({variable, words, user}));
  return words;
}

/// RANK and WORLD_SIZE are also set by scripts around mpirun, from its own variables.
bool is_set_by_hand(const ReadVariable& variable, const LauncherWords& words) {
  return words.launcher == kLaunchers[0].name && text_of(variable, "TORCHELASTIC_RUN_ID").empty();
}

Result<void> check_agreement(const LauncherWords& by_hand, const LauncherWords& mpi) {
  if (by_hand.rank == mpi.rank && (mpi.count < 0 || by_hand.count == mpi.count)) return {};
  return Error(ErrorCode::kInvalidArgument,
               cat("[processes] two launchers contradict each other: ", by_hand.variables, ", and ",
                   mpi.variables, " of ", mpi.launcher,
                   "; unset the variables of one, or set MESHARD_PROCESS_ADDRESS, _RANK and "
                   "_COUNT"));
}

}  // namespace

Result<int> process_number(const ReadVariable& variable, const char* name) {
  std::string text = text_of(variable, name);
  if (text.empty()) return -1;
  Result<std::int64_t> number = read_number(text);
  if (!number.ok() || *number < 0 || *number > kMostProcesses)
    return Error(ErrorCode::kInvalidArgument, cat("[processes] ", name, "=", text,
                                                  " is not a number from 0 to ", kMostProcesses));
  return static_cast<int>(*number);
}

Result<Launchers> recognize_launchers(const ReadVariable& variable, unsigned user) {
  Launchers all;
  for (const Launcher& launcher : kLaunchers) {
    LauncherFinding finding{.launcher = launcher.name};
    if (std::string missing = missing_of(variable, launcher); !missing.empty()) {
      finding.why =
          missing + (missing.find(',') == std::string::npos ? " is" : " are") + " not set";
    } else {
      MESHARD_ASSIGN_OR_RETURN(LauncherWords words, words_of(variable, launcher, user));
      const bool replaces = all.chosen && is_set_by_hand(variable, *all.chosen) && words.by_mpi;
      if (replaces) MESHARD_RETURN_IF_ERROR(check_agreement(*all.chosen, words));
      finding.recognized = true;
      finding.why = "from " + words.variables;
      if (all.chosen && !replaces) {
        finding.recognized = false;
        finding.why =
            cat("set are ", words.variables, ", but ", all.chosen->launcher, " goes first");
      }
      if (replaces)
        for (LauncherFinding& earlier : all.findings)
          if (earlier.recognized) {
            earlier.recognized = false;
            earlier.why = cat("set are ", all.chosen->variables,
                              " without TORCHELASTIC_RUN_ID, which agree with ", launcher.name);
          }
      if (!all.chosen || replaces) all.chosen = std::move(words);
    }
    all.findings.push_back(std::move(finding));
  }
  return all;
}

std::string first_of_node_list(std::string_view list) {
  std::string host;
  for (std::size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    std::size_t end = std::min(list.find(']', i), list.size());
    std::string_view numbers = list.substr(i + 1, end - i - 1);
    host += numbers.substr(0, numbers.find_first_of(",-"));
    i = end;
  }
  return host;
}

}  // namespace meshard

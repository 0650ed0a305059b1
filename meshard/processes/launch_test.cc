#include "meshard/processes/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace meshard {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Result<Launch> launch_with(const Variables& variables, const ProcessesOptions& options = {}) {
  auto read = [&](const char* name) {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  return find_launch(options, read, 1000);
}
std::string error_with(const Variables& variables, const ProcessesOptions& options = {}) {
  Result<Launch> launch = launch_with(variables, options);
  return launch.ok() ? "no error" : launch.error().message();
}

const std::string kSecret = "0123456789abcdef";

Variables complete() {
  return {{"MESHARD_PROCESS_ADDRESS", "node0:7000"},
          {"MESHARD_PROCESS_RANK", "2"},
          {"MESHARD_PROCESS_COUNT", "4"},
          {"MESHARD_PROCESS_SECRET", kSecret}};
}

TEST(Launch, OneProcess) {
  EXPECT_EQ(launch_with({}).value().kind, LaunchKind::kSingle);
  EXPECT_EQ(launch_with({{"MESHARD_PROCESS_RANK", ""}, {"PMI_RANK", ""}}).value().kind,
            LaunchKind::kSingle);
  EXPECT_EQ(
      launch_with({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}).value().kind,
      LaunchKind::kSingle);
  // A batch script of Slurm runs once.
  EXPECT_EQ(launch_with({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}}).value().kind,
            LaunchKind::kSingle);
}

TEST(Launch, Address) {
  Launch launch = launch_with(complete()).value();
  EXPECT_EQ(launch.kind, LaunchKind::kAddress);
  EXPECT_EQ(launch.address, "node0:7000");
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.count, 4);
  EXPECT_EQ(launch.secret, kSecret);
  Variables single = complete();
  single["MESHARD_PROCESS_RANK"] = "0";
  single["MESHARD_PROCESS_COUNT"] = "1";
  EXPECT_EQ(launch_with(single).value().kind, LaunchKind::kSingle);
}

TEST(Launch, AddressGoesBeforeMpi) {
  Variables both = complete();
  both["OMPI_COMM_WORLD_RANK"] = "1";
  EXPECT_EQ(launch_with(both).value().kind, LaunchKind::kAddress);
}

TEST(Launch, UnixSocketsNeedNoSecret) {
  Variables variables = complete();
  variables.erase("MESHARD_PROCESS_SECRET");
  EXPECT_THAT(error_with(variables), HasSubstr("with a secret of 0 characters"));
  variables["MESHARD_PROCESS_ADDRESS"] = "/run/user/0/job";
  EXPECT_EQ(launch_with(variables).value().address, "/run/user/0/job");
}

TEST(Launch, WrongOrMissingVariables) {
  EXPECT_THAT(error_with({{"MESHARD_PROCESS_ADDRESS", "a:1"}}),
              HasSubstr("MESHARD_PROCESS_RANK, MESHARD_PROCESS_COUNT must be set, too, because "
                        "MESHARD_PROCESS_ADDRESS=a:1 is set"));
  EXPECT_THAT(error_with({{"MESHARD_PROCESS_SECRET", kSecret}}),
              HasSubstr("because MESHARD_PROCESS_SECRET is set, and no launcher"));
  struct Case {
    const char* name;
    const char* value;
    const char* message;
  };
  for (const Case& c :
       {Case{"MESHARD_PROCESS_ADDRESS", "node0", "use host:port"},
        Case{"MESHARD_PROCESS_RANK", "4", "process 4 of 4 processes"},
        Case{"MESHARD_PROCESS_RANK", "-1", "MESHARD_PROCESS_RANK=-1 is not a number"},
        Case{"MESHARD_PROCESS_RANK", "two", "MESHARD_PROCESS_RANK=two"},
        Case{"MESHARD_PROCESS_COUNT", "0", "of 0 processes"},
        Case{"MESHARD_PROCESS_COUNT", "4x", "MESHARD_PROCESS_COUNT=4x"},
        Case{"MESHARD_PROCESS_SECRET", "short", "a secret of 5 characters"}}) {
    Variables variables = complete();
    variables[c.name] = c.value;
    EXPECT_THAT(error_with(variables), HasSubstr(c.message));
  }
}

TEST(Launch, Options) {
  ProcessesOptions options;
  options.address = "a:1";
  options.rank = 1;
  options.count = 2;
  options.secret = kSecret;
  EXPECT_EQ(launch_with(complete(), options).value().address, "a:1");
  options.address.clear();
  EXPECT_THAT(error_with({}, options), HasSubstr("no address"));
}

TEST(Launch, Mpi) {
  Launch launch =
      launch_with({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "8"}}).value();
  EXPECT_EQ(launch.kind, LaunchKind::kMpi);
  EXPECT_EQ(launch.announced, 8);
  EXPECT_EQ(launch.variable, "OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(launch_with({{"PMIX_RANK", "3"}}).value().kind, LaunchKind::kMpi);
  EXPECT_EQ(launch_with({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}).value().announced, 4);
}

// --- launchers ---

/// What a launcher sets in the second of four processes, and what follows from it.
struct LauncherCase {
  std::string launcher;
  Variables variables;
  LaunchKind kind;
  std::string address;
};

const Variables kTorchrun = {{"RANK", "1"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "alpha"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_RUN_ID", "none"},
                             {"TORCHELASTIC_RESTART_COUNT", "0"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                            {"PMIX_RANK", "1"},
                            {"PMIX_NAMESPACE", "3571253249"}};
const Variables kMpich = {
    {"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}};
const Variables kSlurm = {{"SLURM_PROCID", "1"},         {"SLURM_STEP_NUM_TASKS", "4"},
                          {"SLURM_LOCALID", "1"},        {"SLURM_JOB_ID", "12"},
                          {"SLURM_STEP_ID", "0"},        {"SLURM_STEP_NUM_NODES", "1"},
                          {"SLURM_STEP_NODELIST", "n01"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

TEST(Launchers, Table) {
  const Variables secret = {{"MESHARD_PROCESS_SECRET", kSecret}};
  const Variables far = {{"LOCAL_WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}};
  const Variables nodes = {{"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_STEP_NODELIST", "n[01-02]"}};
  const Variables gloo = {{"MESHARD_COLLECTIVES", "gloo"}};
  const std::vector<LauncherCase> cases = {
      {"torchrun", kTorchrun, LaunchKind::kAddress, "/tmp/meshard-1000/torchrun-29500-none-0"},
      {"torchrun", with(with(kTorchrun, far), secret), LaunchKind::kAddress, "alpha:29501"},
      {"torchrun", with(kSlurm, kTorchrun), LaunchKind::kAddress,
       "/tmp/meshard-1000/torchrun-29500-none-0"},
      {"mpirun (Open MPI)", kOpenMpi, LaunchKind::kMpi, "/tmp/meshard-1000/mpi-3571253249"},
      {"mpirun (Open MPI)", with(kOpenMpi, gloo), LaunchKind::kAddress,
       "/tmp/meshard-1000/mpi-3571253249"},
      {"mpirun (Open MPI)", with(kSlurm, kOpenMpi), LaunchKind::kMpi,
       "/tmp/meshard-1000/mpi-3571253249"},
      {"mpiexec (MPICH, Intel MPI)", kMpich, LaunchKind::kMpi, ""},
      {"srun with PMIx", with(kSlurm, {{"PMIX_RANK", "1"}}), LaunchKind::kMpi,
       "/tmp/meshard-1000/slurm-12-0"},
      {"srun with PMI", with(kSlurm, {{"PMI_RANK", "1"}}), LaunchKind::kMpi,
       "/tmp/meshard-1000/slurm-12-0"},
      {"srun", kSlurm, LaunchKind::kAddress, "/tmp/meshard-1000/slurm-12-0"},
      {"srun", with(with(kSlurm, nodes), secret), LaunchKind::kAddress, "n01:61192"},
      {"an indexed Job of Kubernetes",
       with(secret, {{"JOB_COMPLETION_INDEX", "1"},
                     {"MESHARD_PROCESS_ADDRESS", "train-0.train:7000"},
                     {"MESHARD_PROCESS_COUNT", "4"}}),
       LaunchKind::kAddress, "train-0.train:7000"},
      {"JAX_COORDINATOR_ADDRESS",
       with(secret, {{"JAX_COORDINATOR_ADDRESS", "alpha:1234"},
                     {"JAX_NUM_PROCESSES", "4"},
                     {"JAX_PROCESS_ID", "1"}}),
       LaunchKind::kAddress, "alpha:1234"},
      {"srun", with(with(kSlurm, secret), {{"JAX_COORDINATOR_ADDRESS", "alpha:1234"}}),
       LaunchKind::kAddress, "alpha:1234"}};
  for (const LauncherCase& c : cases) {
    SCOPED_TRACE(c.launcher + " at " + c.address);
    Result<Launch> launch = launch_with(c.variables);
    ASSERT_TRUE(launch.ok()) << launch.error().message();
    EXPECT_EQ(launch->launcher, c.launcher);
    EXPECT_EQ(launch->kind, c.kind);
    EXPECT_EQ(launch->address, c.address);
    EXPECT_EQ(launch->rank, 1);
    EXPECT_EQ(launch->count, 4);
  }
}

TEST(Launchers, Contradictions) {
  struct Case {
    Variables variables;
    const char* message;
  };
  for (const Case& c : {
           Case{with(kTorchrun, {{"RANK", "4"}}), "RANK=4 with WORLD_SIZE=4"},
           Case{with(kTorchrun, {{"LOCAL_RANK", "5"}}), "LOCAL_RANK=5 with LOCAL_WORLD_SIZE=4"},
           Case{with(kTorchrun, {{"LOCAL_WORLD_SIZE", "9"}}), "LOCAL_WORLD_SIZE"},
           Case{with(kTorchrun, {{"RANK", "one"}}), "RANK=one is not a number"},
           Case{with(kTorchrun, {{"MASTER_PORT", "http"}}), "MASTER_PORT=http is not a port"},
           Case{with(kTorchrun, {{"LOCAL_WORLD_SIZE", "2"}}),
                "would listen at alpha:29501 with a secret of 0"},
           Case{with(kTorchrun, {{"MESHARD_PROCESS_RANK", "2"}}),
                "MESHARD_PROCESS_RANK=2 contradicts torchrun (RANK=1, WORLD_SIZE=4"},
           Case{with(kTorchrun, {{"MESHARD_PROCESS_COUNT", "8"}}),
                "MESHARD_PROCESS_COUNT=8 contradicts torchrun"},
           Case{with(kTorchrun, {{"MESHARD_COLLECTIVES", "mpi"}}),
                "MESHARD_COLLECTIVES=mpi, but the processes are started by torchrun"},
           Case{with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "7"}}),
                "OMPI_COMM_WORLD_RANK=7 with OMPI_COMM_WORLD_SIZE=4"},
           Case{with(kMpich, {{"PMI_RANK", "4"}}), "PMI_RANK=4 with PMI_SIZE=4"},
           Case{with(kMpich, {{"MESHARD_COLLECTIVES", "gloo"}}),
                "MESHARD_PROCESS_ADDRESS must be set, too, because mpiexec"},
           Case{with(kSlurm, {{"SLURM_PROCID", "4"}}),
                "SLURM_PROCID=4 with SLURM_STEP_NUM_TASKS=4"},
           Case{{{"JOB_COMPLETION_INDEX", "1"}},
                "MESHARD_PROCESS_ADDRESS, MESHARD_PROCESS_COUNT must be set, too, because an "
                "indexed"},
           Case{{{"JAX_NUM_PROCESSES", "4"}},
                "JAX_COORDINATOR_ADDRESS, JAX_PROCESS_ID must be set, too"},
           Case{{{"MESHARD_COLLECTIVES", "nccl"}},
                "collectives \"nccl\" are none of automatic, mpi, gloo, none"},
       })
    EXPECT_THAT(error_with(c.variables), HasSubstr(c.message));
  // Set by a script, and different from those of mpirun.
  Variables by_hand = with(kOpenMpi, kTorchrun);
  by_hand.erase("TORCHELASTIC_RUN_ID");
  EXPECT_EQ(launch_with(by_hand).value().launcher, "mpirun (Open MPI)");
  by_hand["RANK"] = "2";
  EXPECT_THAT(error_with(by_hand), HasSubstr("two launchers contradict each other: RANK=2"));
}

TEST(Launchers, SayWhyNot) {
  auto read = [](const Variables& variables) {
    return [&variables](const char* name) {
      auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    };
  };
  std::map<std::string, std::string> why;
  Variables both = with(kSlurm, kTorchrun);
  const Launchers launchers = recognize_launchers(read(both), 0).value();
  for (const LauncherFinding& finding : launchers.findings) {
    EXPECT_EQ(finding.recognized, finding.launcher == "torchrun");
    why[finding.launcher] = finding.why;
  }
  EXPECT_THAT(why["torchrun"], HasSubstr("from RANK=1, WORLD_SIZE=4, MASTER_ADDR=alpha"));
  EXPECT_EQ(why["mpirun (Open MPI)"], "OMPI_COMM_WORLD_RANK is not set");
  EXPECT_THAT(why["srun"], HasSubstr("but torchrun goes first"));
}

// From Slurm's documentation of its hostlists.
TEST(Launchers, FirstNode) {
  EXPECT_EQ(first_of_node_list("n01"), "n01");
  EXPECT_EQ(first_of_node_list("n[001-003,7],m1"), "n001");
  EXPECT_EQ(first_of_node_list("a,b"), "a");
  EXPECT_EQ(first_of_node_list("rack[1-2]n[3,5]"), "rack1n3");
  EXPECT_EQ(first_of_node_list("n[5,9]-ib"), "n5-ib");
}

}  // namespace
}  // namespace meshard

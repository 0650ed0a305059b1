#include "meshard/processes/internal/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace meshard::internal {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Result<Launch> launch_with(const Variables& variables, const ProcessesOptions& options = {}) {
  return find_launch(options, [&](const char* name) {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
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
  EXPECT_EQ(launch.address.to_string(), "node0:7000");
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
  EXPECT_EQ(launch_with(variables).value().address.path, "/run/user/0/job");
}

TEST(Launch, WrongOrMissingVariables) {
  EXPECT_THAT(error_with({{"MESHARD_PROCESS_ADDRESS", "a:1"}}),
              HasSubstr("MESHARD_PROCESS_RANK, MESHARD_PROCESS_COUNT must be set, too, because "
                        "MESHARD_PROCESS_ADDRESS is set"));
  EXPECT_THAT(error_with({{"MESHARD_PROCESS_SECRET", kSecret}}),
              HasSubstr("because MESHARD_PROCESS_SECRET is set"));
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
  EXPECT_EQ(launch_with(complete(), options).value().address.host, "a");
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
  EXPECT_EQ(launch_with({{"SLURM_STEP_NUM_TASKS", "4"}}).value().kind, LaunchKind::kMpi);
}

}  // namespace
}  // namespace meshard::internal

#include "meshard/pjrt/run_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "meshard/pjrt/named_value.h"

namespace meshard::pjrt {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

using List = std::vector<std::int64_t>;

const RunMembers kOneEach{.rank = 1, .hosts = {"a", "b", "c"}, .local_devices = {1, 1, 1}};
const RunMembers kShared{.rank = 2, .hosts = {"a", "b", "a", "b"}, .local_devices = {2, 1, 3, 4}};

TEST(RunRules, CudaTakesNodeAndNumberOfNodes) {
  EXPECT_THAT(options_for_run("cuda", kOneEach, {}, false),
              ElementsAre(NamedValue{"node_id", std::int64_t{1}},
                          NamedValue{"num_nodes", std::int64_t{3}}));
  for (const RunMembers& run : {kOneEach, kShared})
    EXPECT_TRUE(check_client_options(options_for_run("cuda", run, {}, false)).ok());
}

TEST(RunRules, ProcessesOfOneMachineDivideItsGpus) {
  auto devices_of = [](int rank) {
    RunMembers run = kShared;
    run.rank = rank;
    return *find_value<List>(options_for_run("cuda", run, {}, false), "visible_devices");
  };
  EXPECT_EQ(devices_of(0), (List{0, 1}));
  EXPECT_EQ(devices_of(2), (List{2, 3, 4}));
  EXPECT_EQ(devices_of(1), (List{0}));
  EXPECT_EQ(devices_of(3), (List{1, 2, 3, 4}));
  // The launcher has already divided them.
  EXPECT_EQ(options_for_run("cuda", kShared, {}, true).size(), 2u);
}

TEST(RunRules, TheUsersOptionsWin) {
  NamedValue devices{"visible_devices", List{5}}, alone{"num_nodes", std::int64_t{1}};
  EXPECT_EQ(
      find_value<List>(options_for_run("cuda", kShared, {&devices, 1}, false), "visible_devices"),
      nullptr);
  EXPECT_THAT(options_for_run("cuda", kShared, {&alone, 1}, false), IsEmpty());
}

TEST(RunRules, OthersTakeNothing) {
  const RunMembers single{.rank = 0, .hosts = {"a"}, .local_devices = {1}};
  for (const char* platform : {"cuda", "tpu"}) {
    EXPECT_THAT(options_for_run(platform, single, {}, false), IsEmpty());
    EXPECT_THAT(variables_for_run(platform, single), IsEmpty());
  }
  for (const char* platform : {"cpu", "tpu", "metal"})
    EXPECT_THAT(options_for_run(platform, kOneEach, {}, false), IsEmpty());
  for (const char* platform : {"cpu", "cuda"})
    EXPECT_THAT(variables_for_run(platform, kOneEach), IsEmpty());
}

TEST(RunRules, TpuWorkersWithAMachineEach) {
  EXPECT_THAT(
      variables_for_run("tpu", kOneEach),
      UnorderedElementsAre(Pair("TPU_WORKER_ID", "1"), Pair("TPU_WORKER_HOSTNAMES", "a,b,c")));
}

// As for JAX's processes of one chip each on a machine of four chips.
TEST(RunRules, TpuProcessesWithAChipEach) {
  const RunMembers run{.rank = 3, .hosts = {"a", "a", "a", "a"}, .local_devices = {1, 1, 1, 1}};
  auto variables = variables_for_run("tpu", run);
  std::map<std::string, std::string> by_name(variables.begin(), variables.end());
  EXPECT_EQ(by_name.size(), variables.size());
  EXPECT_EQ(by_name["CLOUD_TPU_TASK_ID"], "3");
  EXPECT_EQ(by_name["TPU_PROCESS_ADDRESSES"],
            "localhost:8476,localhost:8477,localhost:8478,localhost:8479");
  EXPECT_EQ(by_name["TPU_PROCESS_PORT"], "8479");
  EXPECT_EQ(by_name["TPU_VISIBLE_CHIPS"], "3");
  EXPECT_EQ(by_name["TPU_PROCESS_BOUNDS"], "2,2,1");
  EXPECT_EQ(by_name["TPU_CHIPS_PER_PROCESS_BOUNDS"], "1,1,1");
}

// How the chips are connected is not known there, so the user says it.
TEST(RunRules, TpuProcessesThatShareSeveralMachines) {
  auto variables = variables_for_run("tpu", kShared);
  std::map<std::string, std::string> by_name(variables.begin(), variables.end());
  EXPECT_EQ(by_name["TPU_PROCESS_ADDRESSES"], "a:8476,b:8476,a:8477,b:8477");
  EXPECT_EQ(by_name["TPU_PROCESS_PORT"], "8477");
  EXPECT_EQ(by_name.count("TPU_PROCESS_BOUNDS"), 0u);
}

}  // namespace
}  // namespace meshard::pjrt

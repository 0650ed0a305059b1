#include "meshard/partitioned/partition.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "meshard/base/whole_file.h"
#include "tests/fake_plugin/load_fake.h"
#include "tests/partitioned/run_programs.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

class Partition : public OnCpuDevices {
 protected:
  static pjrt::CompileOptions on(int partitions) {
    pjrt::CompileOptions options;
    options.num_partitions = partitions;
    return options;
  }
};

TEST_F(Partition, EqualProgramsGiveEqualBytes) {
  for (const char* name : {"data_parallel", "nested_loops"}) {
    std::string text = sharded_program(name, 4).text;
    RewrittenModule first = partition(client(), text, on(4)).value();
    (void)partition(client(), sharded_program("reshard", 4).text, on(4)).value();
    RewrittenModule second = partition(client(), text, on(4)).value();
    EXPECT_EQ(first.hlo, second.hlo);
    EXPECT_EQ(first.fingerprint, second.fingerprint);
  }
}

// One letter of the program changes one of its collectives.
TEST_F(Partition, TheFirstDifferenceIsNamed) {
  std::string text = sharded_program("nested_loops", 4).text, other = text;
  std::size_t at = other.find("applies stablehlo.maximum");
  other.replace(at, std::string("applies stablehlo.maximum").size(), "applies stablehlo.minimum");
  RewrittenModule first = partition(client(), text, on(4)).value();
  RewrittenModule second = partition(client(), other, on(4)).value();
  EXPECT_NE(first.fingerprint, second.fingerprint);
  auto difference = first_difference(first.hlo, second.hlo).value();
  ASSERT_TRUE(difference);
  EXPECT_THAT(difference->to_string(),
              testing::AllOf(testing::HasSubstr("maximum"), testing::HasSubstr("minimum")));
}

TEST_F(Partition, SmallAllReducesAreCombined) {
  EXPECT_EQ(partition(client(), sharded_program("data_parallel", 4).text, on(4)).value().calls, 1);
  RewrittenModule none =
      partition(client(), sharded_program("no_collectives", 4).text, on(4)).value();
  EXPECT_EQ(none.calls, 0);
  EXPECT_FALSE(none.communicates);
}

TEST_F(Partition, NothingStaysInTheTemporaryFolder) {
  TemporaryFolder root = TemporaryFolder::create().value();
  ::setenv("TMPDIR", root.path().c_str(), 1);
  EXPECT_TRUE(partitioned_module(client(), sharded_program("scan", 2).text, on(2)).ok());
  EXPECT_FALSE(partitioned_module(client(), "module {", on(2)).ok());
  ::unsetenv("TMPDIR");
  EXPECT_TRUE(std::filesystem::is_empty(root.path()));
}

TEST_F(Partition, ErrorsOfTheCaller) {
  std::string text = sharded_program("scan", 2).text;
  EXPECT_TRUE(throws_error([&] { partitioned_module(client(), text, on(1)).value(); },
                           ErrorCode::kInvalidArgument, {"1 partition"}));
  pjrt::CompileOptions replicas = on(2);
  replicas.num_replicas = 2;
  EXPECT_TRUE(throws_error([&] { partitioned_module(client(), text, replicas).value(); },
                           ErrorCode::kInvalidArgument, {"2 replicas"}));
  EXPECT_TRUE(throws_error([&] { partitioned_module(client(), "module {", on(2)).value(); },
                           ErrorCode::kUnknown,
                           {"PJRT_Client_Compile", "expected operation name"}));
  EXPECT_TRUE(throws_error([&] { partition(client(), text, on(2), {5}).value(); },
                           ErrorCode::kInvalidArgument, {"2 partitions", "got 1"}));
}

TEST(PartitionWithoutDumps, IsAnErrorThatNamesThePlugin) {
  FakeControl fake(MESHARD_FAKE_PLUGIN);
  fake.reset();
  {
    pjrt::NamedValue option{"cpu_device_count", std::int64_t{2}};
    pjrt::Client client =
        pjrt::Client::create(pjrt::Plugin::adopt(fake.api(), "/some/plugin.so").value(),
                             {&option, 1})
            .value();
    pjrt::CompileOptions options;
    options.num_partitions = 2;
    std::string text = sharded_program("no_collectives", 2).text;
    EXPECT_TRUE(throws_error([&] { partitioned_module(client, text, options).value(); },
                             ErrorCode::kUnimplemented,
                             {"/some/plugin.so", "does not dump partitioned modules"}));
  }
  fake.reset();
}

// Ranks are those of the processes; positions those of the mesh.
TEST_F(Partition, RanksMayBeInAnyOrder) {
  TestRandom random;
  for (const char* name :
       {"manual_partition_id", "manual_gather_scatter", "manual_permute", "uneven"}) {
    ShardedProgram program = sharded_program(name, 4);
    DeviceArrays given = random_arguments(program, 4, random);
    DeviceArrays expected = run_in_one_process(client(), program, 4, given).value();
    const std::vector<int> ranks = {2, 0, 3, 1};
    RewrittenModule module = partition(client(), program.text, on(4), ranks).value();
    StrictCommunicators communicators(4, random), by_position(4, random);
    for (std::size_t position = 0; position < 4; ++position)
      by_position.all[position] = communicators.all[static_cast<std::size_t>(ranks[position])];
    auto programs = load_on_devices(client(), module, 4);
    DeviceArrays got =
        run_as_processes(client(), programs, module.communicates, given, by_position).value();
    EXPECT_TRUE(agree(expected, got, program.tolerance)) << name;
  }
}

}  // namespace
}  // namespace meshard

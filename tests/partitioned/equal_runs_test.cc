// Programs that run as several processes give what they give in one.
#include "tests/partitioned/run_programs.h"

namespace meshard {
namespace {

class EqualRuns : public OnCpuDevices, public testing::WithParamInterface<int> {};

TEST_P(EqualRuns, OfEveryProgram) {
  if (IsSkipped()) return;
  int devices = GetParam();
  TestRandom random;
  for (const ShardedProgram& program : sharded_programs(devices)) {
    SCOPED_TRACE(program.name);
    if (!program.runs_in_one_process) continue;
    DeviceArrays arguments = random_arguments(program, devices, random);
    DeviceArrays expected =
        run_in_one_process(client(), program, devices, arguments).value();
    pjrt::CompileOptions options;
    options.num_partitions = devices;
    Result<RewrittenModule> module = partition(client(), program.text, options);
    ASSERT_TRUE(module.ok()) << module.error();
    StrictCommunicators communicators(devices, random);
    auto programs = load_on_devices(client(), *module, devices);
    Result<DeviceArrays> got =
        run_as_processes(client(), programs, module->communicates, arguments, communicators);
    ASSERT_TRUE(got.ok()) << got.error();
    EXPECT_TRUE(agree(expected, *got, program.tolerance));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, EqualRuns, testing::Values(2, 4, 8));

}  // namespace
}  // namespace meshard

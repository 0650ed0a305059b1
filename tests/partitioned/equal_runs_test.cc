// Programs that run as several processes give what they give in one.
#include <functional>

#include "meshard/partitioned/chain_check_testutil.h"
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
    DeviceArrays expected = run_in_one_process(client(), program, devices, arguments).value();
    pjrt::CompileOptions options;
    options.num_partitions = devices;
    Result<RewrittenModule> module = partition(client(), program.text, options);
    ASSERT_TRUE(module.ok()) << module.error();
    EXPECT_EQ(ChainCheck(read_module(module->hlo)).problem(), "");
    StrictCommunicators communicators(devices, random);
    auto programs = load_on_devices(client(), *module, devices);
    Result<DeviceArrays> got =
        run_as_processes(client(), programs, module->communicates, arguments, communicators);
    ASSERT_TRUE(got.ok()) << got.error();
    EXPECT_TRUE(agree(expected, *got, program.tolerance));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, EqualRuns, testing::Values(2, 4, 8));

// These run only as several processes; the expected values are computed here.
class UnsupportedInOneProcess : public EqualRuns {
 protected:
  // The parts that the devices of the same row (along b), or of the same column, have.
  std::vector<HostArray> parts(int device, bool row) const {
    int devices = GetParam(), width = devices / 2;
    std::vector<HostArray> of;
    for (int other = 0; other < devices; ++other)
      if (row ? other / width == device / width : other % width == device % width)
        of.push_back(given_[static_cast<std::size_t>(other)][0]);
    return of;
  }
  DeviceArrays run(const std::string& name) {
    int devices = GetParam();
    TestRandom random;
    ShardedProgram program = sharded_program(name, devices);
    given_ = random_arguments(program, devices, random);
    pjrt::CompileOptions options;
    options.num_partitions = devices;
    RewrittenModule module = partition(client(), program.text, options).value();
    StrictCommunicators communicators(devices, random);
    return run_as_processes(client(), load_on_devices(client(), module, devices),
                            module.communicates, given_, communicators)
        .value();
  }
  DeviceArrays given_;
};

TEST_P(UnsupportedInOneProcess, Broadcasts) {
  if (IsSkipped()) return;
  DeviceArrays got = run("manual_broadcast"), expected;
  for (int d = 0; d < GetParam(); ++d) expected.push_back({parts(d, true)[0]});
  EXPECT_TRUE(agree(expected, got, 0));
}

TEST_P(UnsupportedInOneProcess, BitwiseReductions) {
  if (IsSkipped()) return;
  DeviceArrays got = run("manual_bits"), expected;
  auto combined = [](const std::vector<HostArray>& parts, auto combine) {
    std::vector<std::int32_t> values = parts[0].to_vector<std::int32_t>();
    for (std::size_t k = 1; k < parts.size(); ++k)
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = combine(values[i], parts[k].data<std::int32_t>()[i]);
    return HostArray::from_vector(std::move(values), parts[0].shape());
  };
  std::vector<HostArray> all;
  for (const auto& part : given_) all.push_back(part[0]);
  for (int d = 0; d < GetParam(); ++d)
    expected.push_back({combined(all, std::bit_and<>()), combined(parts(d, true), std::bit_or<>()),
                        combined(parts(d, false), std::bit_xor<>())});
  EXPECT_TRUE(agree(expected, got, 0));
}

INSTANTIATE_TEST_SUITE_P(Devices, UnsupportedInOneProcess, testing::Values(2, 4, 8));

}  // namespace
}  // namespace meshard

// Runs sharded programs on the CPU plugin: as usual, and as one thread for each process.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/partitioned/collective_call.h"
#include "meshard/partitioned/launch_history.h"
#include "meshard/partitioned/partition.h"
#include "meshard/pjrt/client.h"
#include "tests/partitioned/programs.h"
#include "tests/support/random.h"

namespace meshard {

/// Arrays by device, then by argument or output.
using DeviceArrays = std::vector<std::vector<HostArray>>;

/// A client of the CPU plugin with 8 devices; skips the test, with a message, if there is none.
class OnCpuDevices : public testing::Test {
 protected:
  void SetUp() override;
  const pjrt::Client& client() const;
};

/// Random arguments of a program: small multiples of 1/8. Replicated parts are equal.
DeviceArrays random_arguments(const ShardedProgram& program, int devices, TestRandom& random);

/// One launch on `devices` devices.
Result<DeviceArrays> run_in_one_process(const pjrt::Client& client, const ShardedProgram& program,
                                        int devices, const DeviceArrays& arguments);

/// load_partitioned() for devices of the client, and for one.
Result<pjrt::LoadedExecutable> load_on(const pjrt::Client& client, const RewrittenModule& module,
                                       std::span<const std::size_t> devices);
Result<pjrt::LoadedExecutable> load_on_one(const pjrt::Client& client,
                                           const RewrittenModule& module, std::size_t device);

/// A program that communicates, compiled once and loaded for several devices.
std::vector<pjrt::LoadedExecutable> load_on_devices(const pjrt::Client& client,
                                                    const RewrittenModule& module, int devices);

/// Communicators between threads that check what their users promise: one call at a time. Each call
/// begins after a short random delay.
struct StrictCommunicators {
  StrictCommunicators(int size, TestRandom& random,
                      std::chrono::milliseconds limit = std::chrono::seconds(20));
  std::vector<std::shared_ptr<Communicator>> all;
  /// The number of calls of process 0.
  int calls() const;
};

/// The outputs of one launch.
using Outputs = std::vector<pjrt::BufferList>;
/// Launches a program that communicates with the same arguments on all of its devices, and appends
/// its outputs.
Result<pjrt::Launch> launch(const pjrt::Client& client, CollectiveOrder& order,
                            const pjrt::LoadedExecutable& program,
                            const std::vector<HostArray>& arguments, std::vector<Outputs>& outputs);
/// Those on the first device.
Result<std::vector<HostArray>> read(const Outputs& outputs);

/// One thread for each device launches its program once, or `launches` times without waiting: then
/// each launch reads the arguments, and the outputs are the last ones.
Result<DeviceArrays> run_as_processes(const pjrt::Client& client,
                                      const std::vector<pjrt::LoadedExecutable>& programs,
                                      bool communicates, const DeviceArrays& arguments,
                                      const StrictCommunicators& communicators, int launches = 1);

/// The types and shapes agree, and the values as far as `tolerance` of the largest one allows.
/// Tolerance 0: equal bits.
testing::AssertionResult agree(const DeviceArrays& expected, const DeviceArrays& got,
                               double tolerance);

}  // namespace meshard

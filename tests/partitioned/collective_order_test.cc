// The order of collectives: within a program, and of several programs in flight.
#include <gmock/gmock.h>

#include <atomic>
#include <optional>
#include <thread>

#include "meshard/partitioned/chain_check_testutil.h"
#include "meshard/partitioned/launch_history.h"
#include "tests/partitioned/run_programs.h"
#include "tests/partitioned/unchained.h"

namespace meshard {
namespace {

constexpr int kDevices = 4;

class Order : public OnCpuDevices {
 protected:
  RewrittenModule rewritten(const std::string& name) {
    pjrt::CompileOptions options;
    options.num_partitions = kDevices;
    return partition(client(), sharded_program(name, kDevices).text, options).value();
  }
  DeviceArrays arguments(const std::string& name) {
    return random_arguments(sharded_program(name, kDevices), kDevices, random_);
  }
  Result<DeviceArrays> run(const std::vector<pjrt::LoadedExecutable>& programs,
                           const DeviceArrays& given, int launches = 1) {
    StrictCommunicators communicators(kDevices, random_, std::chrono::seconds(2));
    return run_as_processes(client(), programs, true, given, communicators, launches);
  }
  TestRandom random_;
};

TEST_F(Order, IndependentCollectivesMeet) {
  auto programs = load_on_devices(client(), rewritten("independent"), kDevices);
  DeviceArrays given = arguments("independent");
  DeviceArrays expected =
      run_in_one_process(client(), sharded_program("independent", kDevices), kDevices, given)
          .value();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(agree(expected, run(programs, given).value(), 1e-6));
}

TEST_F(Order, AMissingChainIsNoticed) {
  RewrittenModule module = rewritten("independent");
  EXPECT_EQ(ChainCheck(read_module(module.hlo)).problem(), "");
  EXPECT_NE(ChainCheck(read_module(unchained(module).hlo)).problem(), "");
}

// These communicators notice processes that order their collectives differently.
TEST_F(Order, ProcessesMustAgree) {
  RewrittenModule module = rewritten("independent");
  DeviceArrays given = arguments("independent");
  std::vector<pjrt::LoadedExecutable> programs;
  for (std::size_t d = 0; d < kDevices; ++d) {
    RewrittenModule other = rechained(module, random_);
    EXPECT_EQ(ChainCheck(read_module(other.hlo)).problem(), "");
    programs.push_back(load_on_one(client(), other, d).value());
  }
  EXPECT_FALSE(run(programs, given).ok());
}

// The launches of all threads count as launches in flight of their client, which may have 31.
TEST_F(Order, LaunchesInFlightOfOneProgram) {
  auto programs = load_on_devices(client(), rewritten("independent"), kDevices);
  DeviceArrays given = arguments("independent");
  EXPECT_TRUE(agree(run(programs, given).value(), run(programs, given, 7).value(), 0));
}

// Every process launches several programs, in turn, before it waits for the first.
TEST_F(Order, LaunchesInFlightOfSeveralPrograms) {
  const std::vector<std::string> names = {"independent", "scan", "manual_permute", "nested_loops",
                                          "manual_branches"};
  std::vector<std::vector<pjrt::LoadedExecutable>> programs;
  std::vector<DeviceArrays> given, expected;
  for (const std::string& name : names) {
    RewrittenModule module = rewritten(name);
    programs.push_back(load_on_devices(client(), module, kDevices));
    given.push_back(arguments(name));
    StrictCommunicators communicators(kDevices, random_);
    expected.push_back(
        run_as_processes(client(), programs.back(), true, given.back(), communicators).value());
  }
  StrictCommunicators communicators(kDevices, random_);
  std::vector<CollectiveService> services;
  std::vector<DeviceArrays> got(names.size(), DeviceArrays(kDevices));
  std::vector<std::thread> threads;
  for (int d = 0; d < kDevices; ++d)
    services.push_back(
        CollectiveService::start(client(), communicators.all[static_cast<std::size_t>(d)],
                                 {programs[0][static_cast<std::size_t>(d)].devices()[0]->id()})
            .value());
  for (std::size_t d = 0; d < kDevices; ++d)
    threads.emplace_back([&, d] {
      CollectiveOrder order(client());
      std::vector<Outputs> outputs;
      std::vector<pjrt::Launch> launches;
      // Seven launches; the last ones of each program are read.
      for (std::size_t p : {1, 3, 0, 1, 2, 3, 4})
        launches.push_back(launch(client(), order, programs[p][d], given[p][d], outputs).value());
      for (const pjrt::Launch& each : launches) EXPECT_TRUE(each.await().ok());
      for (std::size_t p = 0; p < names.size(); ++p)
        got[p][d] = read(outputs[outputs.size() - names.size() + p]).value();
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t p = 0; p < names.size(); ++p)
    EXPECT_TRUE(agree(expected[p], got[p], 0)) << names[p];
}

// Notices calls at the same time, and counts them. Does nothing else.
class SlowCommunicator : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Result<void> call(std::span<const int>, const GroupCall&, const void*, void*) override {
    return pass();
  }
  Result<void> permute(int, int, const void*, void*, std::size_t) override { return pass(); }
  int calls() const { return calls_; }

 private:
  Result<void> pass() {
    if (busy_.exchange(true)) return Error(ErrorCode::kInternal, "two calls at once");
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    ++calls_;
    busy_ = false;
    return {};
  }
  std::atomic<bool> busy_{false};
  std::atomic<int> calls_{0};
};

// One process with several devices launches on some of them, then on others.
TEST_F(Order, EachDeviceHasItsOrder) {
  RewrittenModule module = rewritten("independent");
  const std::vector<std::vector<std::size_t>> sets = {{0}, {0, 1, 2}, {2, 1}, {3}, {1, 3}, {0, 2}};
  std::vector<pjrt::LoadedExecutable> programs;
  for (const auto& set : sets) programs.push_back(load_on(client(), module, set).value());
  std::vector<std::shared_ptr<SlowCommunicator>> communicators;
  std::vector<CollectiveService> services;
  for (int device = 0; device < 4; ++device) {
    communicators.push_back(std::make_shared<SlowCommunicator>());
    services.push_back(CollectiveService::start(client(), communicators.back(), {device}).value());
  }
  std::vector<HostArray> given = arguments("independent")[0];
  CollectiveOrder order(client());
  std::vector<int> launched(4);
  std::vector<Outputs> outputs;
  std::vector<pjrt::Launch> launches;
  for (int turn = 0; turn < 3; ++turn)
    for (std::size_t p : {0, 1, 1, 3, 2, 4, 5}) {
      launches.push_back(launch(client(), order, programs[p], given, outputs).value());
      EXPECT_EQ(outputs.back()[0].size(), sets[p].size());
      for (std::size_t device : sets[p]) ++launched[device];
    }
  // The collectives have ended then; the plugin may report the end of a launch a moment later.
  std::vector<int> calls_by_then;
  order
      .communicate([&]() -> Result<void> {
        for (const auto& each : communicators) calls_by_then.push_back(each->calls());
        return {};
      })
      .value();
  for (const pjrt::Launch& each : launches) each.await().value();
  const int calls = communicators[3]->calls() / launched[3];
  EXPECT_GT(calls, 0);
  ASSERT_EQ(calls_by_then.size(), 4);
  for (std::size_t device = 0; device < 4; ++device) {
    EXPECT_EQ(calls_by_then[device], launched[device] * calls);
    EXPECT_EQ(communicators[device]->calls(), launched[device] * calls);
  }
}

TEST_F(Order, ReplicasDoNotRunOnSeveralDevices) {
  RewrittenModule module = rewritten("independent");
  module.uses_replicas = true;
  const std::size_t two[] = {0, 1};
  EXPECT_EQ(load_on(client(), module, two).error().code(), ErrorCode::kUnimplemented);
  EXPECT_TRUE(load_on_one(client(), module, 0).ok());
}

// Fails from the n-th call on.
class FailingCommunicator : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Result<void> call(std::span<const int>, const GroupCall&, const void*, void*) override {
    return answer();
  }
  Result<void> permute(int, int, const void*, void*, std::size_t) override { return answer(); }
  bool fails = true;

 private:
  Result<void> answer() const {
    if (fails) return Error(ErrorCode::kUnavailable, "process 3 is gone");
    return {};
  }
};

TEST_F(Order, AFailureIsTheErrorOfTheLaunchAndOfTheNext) {
  RewrittenModule module = rewritten("tensor_parallel");
  pjrt::LoadedExecutable program = load_on_one(client(), module, 0).value();
  std::vector<HostArray> given = arguments("tensor_parallel")[0];
  CollectiveOrder order(client());
  // A small program may run in the calling thread, which then receives the error.
  auto outcome = [&]() -> std::string {
    std::vector<Outputs> outputs;
    Result<pjrt::Launch> launched = launch(client(), order, program, given, outputs);
    if (!launched.ok()) return launched.error().what();
    Result<void> done = launched->await();
    return done.ok() ? "" : done.error().what();
  };
  EXPECT_THAT(outcome(), testing::HasSubstr("device 0 is not connected to other processes"));
  order.restart();
  auto communicator = std::make_shared<FailingCommunicator>();
  auto service = CollectiveService::start(client(), communicator, {0}).value();
  EXPECT_EQ(CollectiveService::start(client(), communicator, {1, 0}).error().code(),
            ErrorCode::kAlreadyExists);
  std::string text = outcome();
  EXPECT_THAT(text, testing::HasSubstr("[all-reduce] process 3 is gone"));
  EXPECT_THAT(text, testing::HasSubstr("in all-reduce dot"));
  communicator->fails = false;
  EXPECT_THAT(outcome(), testing::HasSubstr("process 3 is gone"));
  order.restart();
  EXPECT_EQ(outcome(), "");
}

// Larger programs fail in a thread of the plugin.
TEST_F(Order, AFailureInAnotherThreadIsThatOfTheNextLaunchToo) {
  RewrittenModule module = rewritten("independent");
  pjrt::LoadedExecutable program = load_on_one(client(), module, 0).value();
  std::vector<HostArray> given = arguments("independent")[0];
  CollectiveOrder order(client());
  auto communicator = std::make_shared<FailingCommunicator>();
  auto service = CollectiveService::start(client(), communicator, {0}).value();
  std::vector<Outputs> outputs;
  std::vector<pjrt::Launch> launches;
  for (int i = 0; i < 3; ++i)
    launches.push_back(launch(client(), order, program, given, outputs).value());
  for (const pjrt::Launch& each : launches)
    EXPECT_THAT(std::string(each.await().error().what()), testing::HasSubstr("process 3 is gone"));
}

}  // namespace
}  // namespace meshard

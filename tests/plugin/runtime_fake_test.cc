// What the runtime requests from a plugin, and when: concurrent launches on parts of the devices.
#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/error/fake_runtime.h"

namespace meshard {
namespace {

constexpr int kLong = 3'000'000;  // microseconds: longer than any wait in this file

struct RuntimeOnFake : testing::Test {
  // Each call records a unique program, with a different constant.
  static Tensor step(const Tensor& x) {
    static int number = 1000;
    return mark_sharding(x * ++number, *x.sharding());
  }
  static Tensor on(std::vector<std::int64_t> ids,
                   SourceLocation where = SourceLocation::current()) {
    auto size = static_cast<std::int64_t>(ids.size());
    return mark_sharding(f32({size, 4}, where), Mesh({{"x", size}}, std::move(ids)), P("x"));
  }
  int launches() const { return control.call_count("PJRT_LoadedExecutable_Execute"); }
  void TearDown() override {
    control.set_run_time(0);
    control.set_delay("PJRT_Client_Compile", 0);
    runtime_client().await_launches();
  }
  const FakeControl& control = fake_runtime();
};

TEST_F(RuntimeOnFake, ProgramsOnDisjointSubmeshesRunAtTheSameTime) {
  Tensor a = on({0, 1}), b = on({4, 5, 6, 7}), c = on({3, 2});
  control.set_run_time(kLong / 10);
  int before = launches();
  for (const Tensor& each : {step(a), step(b), step(c)}) compute({each});
  // No launch was waited for: none had completed when the last one started.
  EXPECT_EQ(control.most_in_flight(), launches() - before);
  EXPECT_GE(launches() - before, 3);
  EXPECT_EQ(control.invalid_calls(), 0);
}

TEST_F(RuntimeOnFake, TheArgumentMatrixHasARowForEachDeviceOfTheSubmesh) {
  std::vector<std::vector<std::int64_t>> sets = {
      {0, 1}, {2, 3}, {4, 5, 6, 7}, {1, 5}, {7, 5, 6, 4}};
  for (const auto& ids : sets) {
    int before = launches(), rows = 0;
    sync({step(on(ids))});
    for (int i = before; i < launches(); ++i) rows += control.launch_rows(i);
    EXPECT_EQ(rows, static_cast<int>(ids.size()));
  }
}

TEST_F(RuntimeOnFake, ALongCompilationHoldsUpNobodyElse) {
  Tensor x = on({2, 3}), slow = step(on({0, 1}));
  sync({x + 7});  // cached from now on
  int compiled = control.call_count("PJRT_Client_Compile");
  control.set_delay("PJRT_Client_Compile", kLong);
  std::atomic<bool> done = false;
  std::thread compiling([&] {
    sync({slow});
    done = true;
  });
  while (control.call_count("PJRT_Client_Compile") == compiled) std::this_thread::yield();
  sync({x + 7});
  EXPECT_FALSE(done) << "the other thread is still compiling";
  compiling.join();
  EXPECT_EQ(slow.to_host().shape(), (Shape{2, 4}));
}

TEST_F(RuntimeOnFake, TwoThreadsThatNeedOneValueComputeItOnce) {
  Tensor shared = step(on({0, 1}));
  Tensor left = shared + 1, right = shared + 2;
  auto nodes = [](const Tensor& tensor) {
    return Graph::build({}, std::vector<Value>{tensor.value()}, 0).nodes().size();
  };
  std::size_t of_shared = nodes(shared), of_both = nodes(left) + nodes(right) - of_shared;
  control.set_delay("PJRT_Client_Compile", kLong / 30);
  RuntimeCounters before = runtime_counters();
  std::thread other([&] { sync({left}); });
  sync({right});
  other.join();
  EXPECT_EQ((runtime_counters() - before).nodes_run, of_both);
}

TEST_F(RuntimeOnFake, PlacingThatCannotBeWatchedFailsAtTheUsersLine) {
  Tensor large = f32({2, 1 << 15});
  control.fail_at("PJRT_Event_OnReady", 2, static_cast<int>(ErrorCode::kInternal), "injected");
  EXPECT_ERROR_HERE(mark_sharding(large, Mesh({{"x", 2}}), P("x")), ErrorCode::kInternal,
                    "PJRT_Event_OnReady", "injected", "while sending f32[1,32768] to device 1");
  Tensor placed = mark_sharding(large, Mesh({{"x", 2}}), P("x"));
  EXPECT_EQ(placed.to_host().shape(), (Shape{2, 1 << 15}));
}

TEST_F(RuntimeOnFake, ACopyThatWasNotSentIsSentAgain) {
  Tensor x = on({0, 1}), offset = f32({4});
  auto sent = [&](auto use) {
    int before = control.call_count("PJRT_Client_BufferFromHostBuffer");
    sync(use());
    return control.call_count("PJRT_Client_BufferFromHostBuffer") - before;
  };
  control.fail_transfer(2, static_cast<int>(ErrorCode::kInternal));
  EXPECT_EQ(sent([&] { return x + offset; }), 2);
  EXPECT_EQ(sent([&] { return x - offset; }), 2) << "one of the two failed";
  EXPECT_EQ(sent([&] { return x * offset; }), 0);
}

TEST_F(RuntimeOnFake, TheStateOfAnOptimizerFailsAtTheUsersLine) {
  Tensor parameter = mark_sharding(f32({1 << 15}), Mesh({{"x", 2}}), P("x"));
  optim::Adam adam;
  optim::Sgd sgd{.momentum = 0.9};
  for (const char* entry : {"PJRT_LoadedExecutable_Execute", "PJRT_Client_BufferFromHostBuffer"}) {
    auto fails = [&](auto init, int line) {
      control.fail_at(entry, 1, static_cast<int>(ErrorCode::kInternal), "injected");
      std::string place = cat("runtime_fake_test.cc:", line, ", in optim::init: ");
      EXPECT_TRUE(throws_error(init, ErrorCode::kInternal, {place, entry, "injected"}));
    };
    fails([&] { (void)optim::init(adam, parameter); }, __LINE__);
    fails([&] { (void)optim::init(sgd, parameter); }, __LINE__);
  }
}

struct SmallResults : RuntimeOnFake {
  using Tensors = std::vector<Tensor>;
  static std::int64_t live_bytes() {
    std::int64_t bytes = 0;
    for (const pjrt::Device* device : runtime_client().addressable_devices())
      bytes += device->live_bytes();
    return bytes;
  }
  static Tensor step_on(const Tensor& x) {
    return mark_sharding(x + 3001, Mesh({{"x", 2}}), P("x"));
  }
  // Calls of a program on two devices with this many arguments and results.
  static auto program_of(int arrays) {
    Tensors state;
    for (int i = 0; i < arrays; ++i) state.push_back(on({0, 1}));
    return [state, f = jit([](Tensors x) {
                     for (Tensor& each : x) each = step_on(each);
                     return x;
                   })] { return f(state); };
  }
};

// They are destroyed a moment after they are released: by the next launch, or by a later one if
// they are few.
TEST_F(SmallResults, AreDestroyedByLaterLaunchesOrWaits) {
  auto launch = program_of(2);
  sync(launch());
  meshard::sync();
  const int objects = control.live_objects();
  const std::int64_t bytes = live_bytes();
  constexpr std::int64_t kLaunch = 4 * 16;
  Tensors results = launch();
  EXPECT_EQ(live_bytes(), bytes + kLaunch);
  results.clear();
  EXPECT_EQ(live_bytes(), bytes + kLaunch) << "counted until they are destroyed";
  std::int64_t most = 0;
  for (int i = 0; i < 1000; ++i) {
    sync(launch());
    most = std::max(most, live_bytes() - bytes);
  }
  // Four batches of 64 buffers may wait for the thread that destroys them, which holds one more,
  // beside those of this thread and of the last launch.
  EXPECT_LE(most, 6 * 64 * 16 + kLaunch);
  meshard::sync();
  EXPECT_EQ(control.live_objects(), objects);
  EXPECT_EQ(live_bytes(), bytes);
  (void)launch();
  EXPECT_EQ(memory_stats(0).live_bytes + memory_stats(1).live_bytes, bytes);
}

// Many are destroyed by a thread of their own.
TEST_F(SmallResults, OfManyArraysAreDestroyedBeforeWaitsEnd) {
  auto launch = program_of(100);
  sync(launch());
  meshard::sync();
  const int objects = control.live_objects();
  const std::int64_t bytes = live_bytes();
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 10; ++i) sync(launch());
    meshard::sync();
    EXPECT_EQ(control.live_objects(), objects);
    EXPECT_EQ(live_bytes(), bytes);
  }
}

// Threads that launch and release at the same time hand their buffers to the same thread.
TEST_F(SmallResults, OfSeveralThreadsAreDestroyed) {
  auto launch = program_of(40);
  sync(launch());
  meshard::sync();
  const int objects = control.live_objects();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) sync(launch());
    });
  for (std::thread& thread : threads) thread.join();
  meshard::sync();
  EXPECT_EQ(control.live_objects(), objects);
}

// A program whose launches ended inside the plugin's call for a while, and then no longer.
TEST_F(RuntimeOnFake, LaunchesOnOneDeviceThatEndInsideTheCallAreNotInFlight) {
  auto f = jit([](Tensor x) { return x + 4001; });
  Tensor x = on({0});
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 200; ++i) sync(f(x));
    meshard::sync();
    (void)f(x);
    EXPECT_EQ(runtime_client().launches_in_flight(), 0u);
    control.hold_runs(1);
    for (int i = 0; i < 200; ++i) (void)f(x);
    EXPECT_EQ(runtime_client().launches_in_flight(), 200u);
    control.hold_runs(0);
    meshard::sync();
    for (int i = 0; i < 100; ++i) (void)f(x);  // it is asked again after 64
    meshard::sync();
    (void)f(x);
    EXPECT_EQ(runtime_client().launches_in_flight(), 0u);
  }
}

}  // namespace
}  // namespace meshard

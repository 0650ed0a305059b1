// What the runtime asks of a plugin, and when: launches on parts of the devices, side by side.
#include <atomic>
#include <thread>

#include "tests/error/fake_runtime.h"

namespace meshard {
namespace {

constexpr int kLong = 3'000'000;  // microseconds: longer than anything here waits for

struct RuntimeOnFake : testing::Test {
  // A program with a collective, which is launched on all devices of the mesh together. Every call
  // makes one that no other has: by its constant.
  static Tensor step(const Tensor& x) {
    static int number = 1000;
    return mark_sharding(x * ++number + sum(x), *x.sharding());
  }
  static Tensor on(std::vector<std::int64_t> ids,
                   SourceLocation where = SourceLocation::current()) {
    auto size = static_cast<std::int64_t>(ids.size());
    return mark_sharding(f32({size, 4}, where), Mesh({{"x", size}}, std::move(ids)), P("x"));
  }
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
  int before = control.call_count("PJRT_LoadedExecutable_Execute");
  Tensor x = step(a), y = step(b), z = step(c);
  for (const Tensor& each : {x, y, z}) sync({each});
  // None was waited for: when the last was launched, the first had not completed.
  EXPECT_EQ(control.call_count("PJRT_LoadedExecutable_Execute") - before, 3);
  EXPECT_EQ(control.most_in_flight(), 3);
  EXPECT_EQ(control.invalid_calls(), 0);
}

TEST_F(RuntimeOnFake, TheArgumentMatrixHasARowForEachDeviceOfTheSubmesh) {
  int before = control.call_count("PJRT_LoadedExecutable_Execute");
  std::vector<std::vector<std::int64_t>> sets = {
      {0, 1}, {2, 3}, {4, 5, 6, 7}, {1, 5}, {7, 5, 6, 4}};
  for (const auto& ids : sets) sync({step(on(ids))});
  for (std::size_t i = 0; i < sets.size(); ++i)
    EXPECT_EQ(control.launch_rows(before + static_cast<int>(i)), static_cast<int>(sets[i].size()));
}

TEST_F(RuntimeOnFake, ALongCompilationHoldsUpNobodyElse) {
  Tensor x = on({2, 3}), slow = step(on({0, 1}));
  sync({x + 7});  // from now on in the cache
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

}  // namespace
}  // namespace meshard

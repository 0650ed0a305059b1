// sync(): returns once the values are computed, reports errors, and waits for nothing else.
#include <chrono>

#include "tests/error/fake_runtime.h"

namespace meshard {
namespace {

struct Waiting : testing::Test {
  // Each call records a unique program, with a different constant.
  static Tensor step(const Tensor& x) {
    static int number = 5000;
    return x * ++number;
  }
  static Tensor on(std::vector<std::int64_t> ids) {
    auto size = static_cast<std::int64_t>(ids.size());
    return mark_sharding(f32({size, 4}), Mesh({{"x", size}}, std::move(ids)), P("x"));
  }
  static bool is_ready(const Tensor& tensor) {
    const auto& array = static_cast<const DeviceArray&>(*tensor.value().storage());
    for (std::size_t i = 0; i < array.num_shards(); ++i)
      if (!array.buffers()[i].ready_event().value().is_ready().value()) return false;
    return true;
  }
  void run_for(std::chrono::microseconds time) {
    control.set_run_time(static_cast<int>(time.count()));
  }
  void SetUp() override { run_for(std::chrono::milliseconds(300)); }
  void TearDown() override {
    control.fail_runs(0);
    control.set_run_time(0);
    runtime_client().await_launches();
  }
  const FakeControl& control = fake_runtime();
};

TEST_F(Waiting, ComputeStartsAndSyncWaits) {
  Tensor x = on({0, 1}), y = step(x);
  compute({y});
  EXPECT_FALSE(is_ready(y)) << "a launch is not waited for";
  sync(y);
  EXPECT_TRUE(is_ready(y));
}

TEST_F(Waiting, AJittedCallIsAsynchronousAndItsResultsCanBeWaitedFor) {
  auto f = jit([](Tensor x) { return std::tuple(x * 4001, std::vector{x + 4002}); });
  auto result = f(on({2, 3}));
  EXPECT_FALSE(is_ready(std::get<0>(result)));
  sync(result);
  EXPECT_TRUE(is_ready(std::get<0>(result)));
  EXPECT_TRUE(is_ready(std::get<1>(result)[0]));
}

TEST_F(Waiting, SyncWithoutArgumentsWaitsForEveryLaunch) {
  Tensor a = step(on({0, 1})), b = step(on({4, 5, 6, 7})), recorded = step(on({2, 3}));
  compute({a});
  compute({b});
  meshard::sync();
  EXPECT_TRUE(is_ready(a) && is_ready(b));
  EXPECT_EQ(recorded.placement(), "recorded") << "nobody asked for it";
}

TEST_F(Waiting, ErrorsOfAProgramThatRunsHaveTheLineOfTheSync) {
  Tensor y = step(on({0, 1}));
  control.fail_runs(static_cast<int>(ErrorCode::kInternal));
  EXPECT_ERROR_HERE((sync(y), 0), ErrorCode::kInternal, "the run failed as the test asked",
                    "f32[2,4]", "device 0");
}

TEST_F(Waiting, DonatedValuesAreNotThere) {
  run_for(std::chrono::microseconds(0));
  Tensor x = step(f32({8}));
  sync(x);
  (void)jit([](Tensor t) { return t + 4100; }, {.donate = {0}})(x);
  EXPECT_ERROR_HERE((sync(x), 0), ErrorCode::kFailedPrecondition, "is gone", "donated");
}

TEST_F(Waiting, DevicesBeyond32BitsDoNotExist) {
  std::int64_t far = std::int64_t{1} << 32;
  Mesh mesh({{"x", 2}}, {far, far + 1});
  Tensor x = f32({4});
  EXPECT_ERROR_HERE(mark_sharding(x, mesh, P("x")), ErrorCode::kNotFound,
                    "device 4294967296 does not exist", "0,1,2,3,4,5,6,7");
  Tensor recorded = mark_sharding(x + 1, mesh, P("x"));
  EXPECT_ERROR_HERE(recorded.to_host(), ErrorCode::kNotFound, "device 4294967296 does not exist");
  EXPECT_EQ(runtime_client().find_device(far), nullptr);
  EXPECT_EQ(runtime_client().find_device(-far), nullptr);
  EXPECT_NE(runtime_client().find_device(0), nullptr);
}

}  // namespace
}  // namespace meshard

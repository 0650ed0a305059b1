// The state after a failure: inputs and recorded values are kept, and the runtime continues.
#include <fstream>

#include "tests/error/fake_runtime.h"

namespace meshard {
namespace {

struct Failures : testing::Test {
  static Tensor on(std::vector<std::int64_t> ids) {
    auto size = static_cast<std::int64_t>(ids.size());
    return mark_sharding(f32({size, 4}), Mesh({{"x", size}}, std::move(ids)), P("x"));
  }
  // Each call records a different program, with a different constant.
  static Tensor step(const Tensor& x) {
    static int number = 7000;
    return x * ++number;
  }
  void fail_runs(bool on) { control.fail_runs(on ? static_cast<int>(ErrorCode::kInternal) : 0); }
  void TearDown() override {
    fail_runs(false);
    control.set_run_time(0);
    runtime_client().await_launches();
  }
  const FakeControl& control = fake_runtime();
};

TEST_F(Failures, ARecordedValueIsComputedAgainAfterItsLaunchFailed) {
  for (int run_time : {0, 20'000}) {
    control.set_run_time(run_time);
    Tensor x = on({0, 1}), y = step(x), z = step(y);
    fail_runs(true);
    compute({y});
    EXPECT_ERROR_HERE(y.to_host(), ErrorCode::kInternal, "the run failed as the test asked");
    fail_runs(false);
    EXPECT_EQ(y.to_host().shape(), Shape({2, 4})) << "after a run of " << run_time << " us";
    EXPECT_EQ(z.to_host().shape(), Shape({2, 4}));
    EXPECT_EQ(x.to_host().shape(), Shape({2, 4})) << "the operand is as it was";
  }
}

TEST_F(Failures, WhatWasComputedFromAFailedValueIsComputedAgainWithIt) {
  control.set_run_time(20'000);
  Tensor y = step(on({0, 1})), z = step(y);
  fail_runs(true);
  compute({y});
  compute({z});
  EXPECT_ERROR_HERE((sync(z), 0), ErrorCode::kInternal, "the run failed as the test asked");
  fail_runs(false);
  EXPECT_EQ(z.to_host().shape(), Shape({2, 4}));
  EXPECT_EQ(y.to_host().shape(), Shape({2, 4}));
}

TEST_F(Failures, ARefusedLaunchLeavesRecordedValuesAndDonatedArguments) {
  Tensor x = on({0, 1}), y = step(x);
  control.fail_at("PJRT_LoadedExecutable_Execute", 1, 8, "refused on purpose");
  EXPECT_ERROR_HERE(y.to_host(), ErrorCode::kResourceExhausted, "refused on purpose");
  EXPECT_EQ(y.to_host().shape(), Shape({2, 4}));
  Tensor donated = step(on({0, 1}));
  sync(donated);
  auto f = jit([](Tensor t) { return t + 7500; }, {.donate = {0}});
  control.fail_at("PJRT_LoadedExecutable_Execute", 1, 8, "refused on purpose");
  EXPECT_THROW((void)f(donated), Error);
  EXPECT_EQ(donated.to_host().shape(), Shape({2, 4})) << "nothing ran that consumed it";
  EXPECT_EQ(f(donated).to_host().shape(), Shape({2, 4}));
}

TEST_F(Failures, AProgramThatCannotBeLoadedForOtherDevicesIsCompiledAgain) {
  auto f = jit([](Tensor t) { return t + 7600; }, {.name = "moving"});
  std::uint32_t line = __LINE__ - 1;
  sync(f(on({0, 1})));
  RuntimeCounters before = runtime_counters();
  control.fail_at("PJRT_Executable_DeserializeAndLoad", 1, 13, "not loaded on purpose");
  EXPECT_EQ(f(on({2, 3})).to_host().shape(), Shape({2, 4}));
  EXPECT_EQ((runtime_counters() - before).compiles, 1u);
  EXPECT_EQ((runtime_counters() - before).retargets, 0u);
  ASSERT_FALSE(all_advice().empty());
  Advice advice = all_advice().back();
  EXPECT_EQ(advice.topic, "runtime.retarget");
  EXPECT_EQ(advice.where.line, line);
  for (const char* part : {"\"moving\"", "devices=[2,3]", "not loaded on purpose"})
    EXPECT_NE(advice.text.find(part), std::string::npos) << advice.text;
  sync(f(on({4, 5})));
  EXPECT_EQ((runtime_counters() - before).retargets, 1u) << "the next one is loaded";
}

TEST_F(Failures, AfterARestartProgramsAndValuesGoOn) {
  Tensor kept = step(on({2, 3})), host = f32({2, 4});
  sync(kept);
  Tensor captured = step(on({2, 3}));
  auto f = jit([captured](Tensor t) { return t + captured; });
  sync(f(kept));
  const pjrt::Client* before = &runtime_client();
  restart_runtime();
  EXPECT_NE(&runtime_client(), before);
  EXPECT_EQ(kept.to_host().shape(), Shape({2, 4})) << "read where it is stored";
  Tensor again = f(kept);
  EXPECT_EQ(again.to_host().shape(), Shape({2, 4}));
  EXPECT_EQ(again.placement(), "devices 2,3");
  EXPECT_EQ(step(kept).to_host().shape(), Shape({2, 4}));
  EXPECT_EQ(transfer(kept, Mesh({{"x", 2}}, {6, 7}), P("x")).placement(), "devices 6,7");
  sync(mark_sharding(kept, Mesh({{"y", 2}}, {2, 3}), P(none, "y")));
  EXPECT_EQ((host + kept).to_host().shape(), Shape({2, 4}));
}

TEST_F(Failures, ARestartBeforeTheFirstUseDoesNothing) {
  const pjrt::Client* client = &runtime_client();
  restart_runtime();
  restart_runtime();
  EXPECT_NE(&runtime_client(), client);
}

}  // namespace
}  // namespace meshard

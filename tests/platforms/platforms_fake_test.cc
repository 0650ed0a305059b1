// Two clients of the fake plugin as two platforms: failures of one of them, and when they occur.
#include <array>
#include <atomic>
#include <thread>

#include "meshard/base/stall_report.h"
#include "meshard/meshard.h"
#include "tests/error/fake_runtime.h"

namespace meshard {
namespace {

pjrt::NamedValue devices(std::int64_t count) { return {"cpu_device_count", count}; }

class PlatformsOnFake : public testing::Test {
 protected:
  void SetUp() override {
    static const bool configured = [] {
      control().reset();
      RuntimeOptions options{.plugin = MESHARD_FAKE_PLUGIN, .platform = "fake"};
      options.client_options = {devices(8)};
      for (const char* type : {"other", "third"})
        options.platforms.push_back(
            {.device_type = type, .plugin = MESHARD_FAKE_PLUGIN, .client_options = {devices(4)}});
      return configure_runtime(std::move(options)).ok();
    }();
    ASSERT_TRUE(configured);
  }
  void TearDown() override {
    control().fail_at(nullptr, 0, 0, "");
    control().hold_runs(0);
    control().fail_runs(0);
    for (const pjrt::Client* client : started_clients()) client->await_launches();
    EXPECT_EQ(control().invalid_calls(), 0);
  }
  static const FakeControl& control() {
    static const FakeControl found(MESHARD_FAKE_PLUGIN);
    return found;
  }
  static Mesh mesh(const char* type) { return Mesh({{"x", 4}}).with_device_type(type); }
  static Tensor on(const char* type, SourceLocation where = SourceLocation::current()) {
    return mark_sharding(In(f32({8}, where), where), mesh(type), P("x"));
  }
};

// Must be the first test, so that `third` has not been started.
TEST_F(PlatformsOnFake, AClientThatCannotBeMadeIsNamedAndAskedForAgain) {
  sync(on("fake"));
  control().fail_at("PJRT_Client_Create", 1, 14, "the driver is busy");
  EXPECT_ERROR_HERE(on("third"), ErrorCode::kUnavailable, "the driver is busy",
                    "while starting platform third with the plugin " MESHARD_FAKE_PLUGIN);
  EXPECT_EQ(started_clients().size(), 1u);
  EXPECT_EQ(on("third").placement(), "devices 0,1,2,3 of third");
  EXPECT_EQ(started_clients().size(), 2u);
}

TEST_F(PlatformsOnFake, ErrorsNameThePlatform) {
  Tensor a = on("fake"), b = on("other");
  control().fail_at("PJRT_Client_BufferFromHostBuffer", 1, 8, "no memory");
  EXPECT_ERROR_HERE(on("other"), ErrorCode::kResourceExhausted, "no memory",
                    "to device 0 of other");
  control().fail_at("PJRT_Client_Compile", 1, 13, "the compiler failed");
  EXPECT_ERROR_HERE((b * 4711).to_host(), ErrorCode::kInternal, "the compiler failed",
                    "while compiling for devices of other");
  control().fail_at("PJRT_LoadedExecutable_Execute", 1, 13, "the launch failed");
  EXPECT_ERROR_HERE(sync(a * 4712), ErrorCode::kInternal, "the launch failed", "of fake");
  control().fail_runs(13);
  Tensor failed = b * 4713;
  EXPECT_ERROR_HERE(sync(failed), ErrorCode::kInternal,
                    "while waiting for f32[8] on device 0 of other");
  control().fail_runs(0);
  sync(failed);  // recorded again
  EXPECT_EQ(failed.placement(), "devices 0,1,2,3 of other");
}

TEST_F(PlatformsOnFake, AFailedTransferLeavesTheValueWhereItWas) {
  Tensor a = on("fake");
  control().fail_at("PJRT_Client_BufferFromHostBuffer", 3, 8, "no memory");
  EXPECT_ERROR_HERE(transfer(a, mesh("other"), P("x")), ErrorCode::kResourceExhausted, "no memory",
                    "to device 2 of other");
  EXPECT_EQ(a.placement(), "devices 0,1,2,3 of fake");
  EXPECT_EQ(transfer(a, mesh("other"), P("x")).placement(), "devices 0,1,2,3 of other");
}

// No buffer of one client may reach the other, where a real plugin would crash.
TEST_F(PlatformsOnFake, NothingRunsIfTwoPlatformsMeet) {
  Tensor a = on("fake"), b = on("other");
  int launches = control().call_count("PJRT_LoadedExecutable_Execute");
  int copies = control().call_count("PJRT_Buffer_CopyToDevice");
  EXPECT_ERROR_HERE((a + b).to_host(), ErrorCode::kInvalidArgument, "two platforms, fake and other",
                    "transfer()");
  auto add = jit([](Tensor x, Tensor y) { return x + y; });
  Tensor of_a = add(a, a), of_b = add(b, b);
  EXPECT_TRUE(throws_error([&] { add(a, b); }, ErrorCode::kInvalidArgument,
                           {"platforms_fake_test.cc:", "two platforms, fake and other"}));
  EXPECT_EQ(control().call_count("PJRT_LoadedExecutable_Execute"), launches + 8)
      << "two launches, device by device";
  EXPECT_EQ(control().call_count("PJRT_Buffer_CopyToDevice"), copies);
}

TEST_F(PlatformsOnFake, ProgramsOfBothRunAtTheSameTime) {
  Tensor a = on("fake"), b = on("other");
  sync(a * 4714, b * 4714);
  control().hold_runs(1);
  Tensor x = a * 4714, y = b * 4714;
  compute({x, y});
  EXPECT_EQ(runtime_client("fake").launches_in_flight(), 1u);
  EXPECT_EQ(runtime_client("other").launches_in_flight(), 1u);
  std::string report;
  std::atomic<bool> reported = false;
  set_stall_time(std::chrono::milliseconds(30));
  set_stall_handler([&](const Stall& stall) {
    report = stall.text;
    reported = true;
  });
  std::thread waiting([&] { sync(y); });
  while (!reported) std::this_thread::yield();
  control().hold_runs(0);
  waiting.join();
  set_stall_handler({});
  EXPECT_NE(report.find("on devices 0,1,2,3 of fake"), std::string::npos) << report;
  EXPECT_NE(report.find("on devices 0,1,2,3 of other"), std::string::npos) << report;
}

TEST_F(PlatformsOnFake, AWedgedClientIsReplacedWithTheOther) {
  Tensor a = on("fake"), b = on("other");
  sync(a, b);
  restart_runtime();
  Tensor x = b + 4715;
  sync(x);
  EXPECT_EQ(x.placement(), "devices 0,1,2,3 of other");
  EXPECT_EQ(started_clients().size(), 1u) << "each starts again at its next use";
  sync(a + 4715);
  EXPECT_EQ(started_clients().size(), 2u);
}

// Threads that use a platform for the first time at once create only one client.
TEST_F(PlatformsOnFake, ThreadsThatStartAPlatformTogether) {
  restart_runtime();
  int before = control().call_count("PJRT_Client_Create");
  std::array<const pjrt::Client*, 8> found{};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < found.size(); ++t)
    threads.emplace_back([&, t] { found[t] = &runtime_client(t % 2 == 0 ? "other" : "fake"); });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(control().call_count("PJRT_Client_Create") - before, 2);
  for (std::size_t t = 2; t < found.size(); ++t) EXPECT_EQ(found[t], found[t - 2]);
  EXPECT_NE(found[0], found[1]);
}

}  // namespace
}  // namespace meshard

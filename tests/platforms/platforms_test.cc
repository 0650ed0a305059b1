// Processes with two platforms: clients, programs, errors, threads and traces.
#include <functional>
#include <set>
#include <thread>

#include "meshard/mesh/device_type.h"
#include "tests/platforms/two_platforms.h"

namespace meshard {
namespace {

using Platforms = TwoPlatforms;

TEST_F(Platforms, EachHasItsOwnClient) {
  const pjrt::Client &one = runtime_client(), &two = runtime_client("second");
  EXPECT_NE(one.raw(), two.raw());
  EXPECT_EQ(one.device_count(), 8u);
  EXPECT_EQ(two.device_count(), 4u);
  EXPECT_EQ(two.plugin().path(), second_plugin());
  EXPECT_EQ(one.name(), "cpu");
  EXPECT_EQ(two.name(), "second");
  EXPECT_EQ(&runtime_client(second()), &two);
  EXPECT_EQ(&runtime_client(first()), &one);
  EXPECT_EQ(&runtime_client(first().with_device_type("cpu")), &one);
  EXPECT_EQ(&runtime_client("cpu"), &one);
  EXPECT_EQ(&runtime_client(""), &one);
  EXPECT_EQ(started_clients(), (std::vector{&one, &two}));
  EXPECT_EQ(runtime_topology("second").size(), 4);
  EXPECT_EQ(runtime_topology().size(), 8);
}

TEST_F(Platforms, MeshesOfBothComputeSideBySide) {
  Mesh cpu = init_device_mesh("cpu", {2, 4}, {{"dp", "tp"}});
  Mesh other = init_device_mesh("second", {2, 2}, {{"dp", "tp"}});
  Tensor a = mark_sharding(ramp({8, 8}), cpu, P("dp", "tp"));
  Tensor b = mark_sharding(ramp({8, 8}), other, P("dp", "tp"));
  EXPECT_EQ(other.device_type(), "second");
  EXPECT_EQ(a.placement(), "devices 0,1,2,3,4,5,6,7 of cpu");
  EXPECT_EQ(b.placement(), "devices 0,1,2,3 of second");
  Tensor c = matmul(a, a), d = matmul(b, b);
  sync({c, d});
  EXPECT_EQ(values(c), values(d));
  EXPECT_EQ(c.sharding()->mesh(), cpu);
  EXPECT_EQ(d.sharding()->mesh(), other);
}

// An empty device type is that of the default platform.
TEST_F(Platforms, AMeshWithoutATypeIsOfTheDefaultPlatform) {
  Tensor a = mark_sharding(ramp({8}), first(), P("x"));
  Tensor b = mark_sharding(ramp({8}), first().with_device_type("cpu"), P("x"));
  EXPECT_EQ(values(a + b), (std::vector<float>{0, 2, 4, 6, 8, 10, 12, 14}));
  EXPECT_FALSE(first().same_devices(second()));
  EXPECT_TRUE(first().same_devices(first().with_device_type("cpu")));
  EXPECT_EQ(overlap(first(), second()), Overlap::kNone);
}

TEST_F(Platforms, ValuesOfTwoPlatformsDoNotMeetInOneOperation) {
  Tensor a = mark_sharding(ramp({8}), first(), P("x"));
  Tensor b = mark_sharding(ramp({8}), second(), P("x"));
  auto refused = [](auto&& use) {
    return throws_error(use, ErrorCode::kInvalidArgument,
                        {"platforms_test.cc:", "two platforms", "cpu", "second", "transfer()",
                         "mesh<x=4>,", "mesh<x=4; device_type=second>,"});
  };
  EXPECT_TRUE(refused([&] { (a + b).to_host(); }));
  auto add = jit([](Tensor x, Tensor y) { return x + y; });
  EXPECT_TRUE(refused([&] { add(a, b); }));
  EXPECT_TRUE(refused([&] { mark_sharding(a + 1, second(), P("x")).to_host(); }));
  // A replicated value would narrow to a part of its own platform, but not to another platform.
  Tensor table = mark_sharding(ones({8}), Mesh({{"all", 8}}), P(none));
  EXPECT_TRUE(throws_error([&] { (table + b).to_host(); }, ErrorCode::kInvalidArgument,
                           {"two platforms", "cpu", "second"}));
  EXPECT_EQ(values(b + transfer(a, second(), P("x")))[7], 14);
  EXPECT_EQ(values(table + a)[7], 8);
}

TEST_F(Platforms, AJittedFunctionIsCompiledForEach) {
  auto step = jit([](Tensor x) { return tanh(x) * 0.25f + 3; });
  Tensor a = mark_sharding(ramp({8}), first(), P("x"));
  Tensor b = mark_sharding(ramp({8}), second(), P("x"));
  sync({a, b});
  restart();
  Tensor of_a = step(a), of_b = step(b);
  EXPECT_EQ(done().compiles, 2u);
  EXPECT_EQ(done().retargets, 0u) << "equal texts of two platforms are two programs";
  EXPECT_EQ(values(of_a), values(of_b));
  EXPECT_EQ(of_b.placement(), "devices 0,1,2,3 of second");
  (void)step(of_a);
  (void)step(of_b);
  EXPECT_EQ(done().compiles, 2u);
  // On another part of the same platform, the program is loaded but not compiled again.
  auto of_part = [&](std::vector<std::int64_t> ids) {
    return values(step(mark_sharding(ramp({8}), second(std::move(ids)), P("x"))));
  };
  EXPECT_EQ(of_part({0, 1}), of_part({3, 2}));
  EXPECT_EQ(done().compiles, 3u);
  EXPECT_EQ(done().retargets, 1u);
}

TEST_F(Platforms, ADonatedValueIsGoneOnItsPlatform) {
  auto step = jit([](Tensor x) { return x + 1; }, {.donate = {0}});
  Tensor x = mark_sharding(ramp({1 << 16}), second(), P("x")), moved = transfer(x, first(), P("x"));
  Tensor y = step(x);
  EXPECT_TRUE(throws_error([&] { x.to_host(); }, ErrorCode::kFailedPrecondition, {"donated"}));
  EXPECT_EQ(values(y)[9], 10);
  EXPECT_EQ(values(moved)[9], 9);
}

TEST_F(Platforms, SyncWaitsForBoth) {
  auto step = jit([](Tensor x) {
    return fori_loop(
        0, 50, [](Tensor, Tensor c) { return tanh(matmul(c, c) * 0.01f); }, x);
  });
  Tensor a = step(mark_sharding(ones({64, 64}), first(), P("x")));
  Tensor b = step(mark_sharding(ones({64, 64}), second(), P("x")));
  meshard::sync();
  EXPECT_EQ(runtime_client().launches_in_flight(), 0u);
  EXPECT_EQ(runtime_client("second").launches_in_flight(), 0u);
}

TEST_F(Platforms, DevicesThatThePlatformLacks) {
  check_devices(second());
  EXPECT_TRUE(throws_error(
      [] {
        check_devices(second({3, 4}));
      },
      ErrorCode::kNotFound,
      {"platforms_test.cc:", "do not exist: 4;", "there are 4 second devices"}));
  EXPECT_TRUE(throws_error([] { init_device_mesh("second", {8}); }, ErrorCode::kInvalidArgument,
                           {"platforms_test.cc:", "needs 8 devices", "4 of type second"}));
  Mesh seven = second({0, 7});
  for (const auto& use : std::vector<std::function<void()>>{
           [&] { mark_sharding(ramp({4}), seven, P("x")).to_host(); },
           [&] { mark_sharding(ramp({4}) * 2, seven, P("x")).to_host(); },
           [&] { transfer(ones({4}), seven, P("x")); }})
    EXPECT_TRUE(throws_error(use, ErrorCode::kNotFound,
                             {"platforms_test.cc:", "device 7", "platform second", "0,1,2,3"}));
}

TEST_F(Platforms, ADeviceTypeWithoutAPlugin) {
  Mesh nowhere = first().with_device_type("nowhere");
  Tensor placed = mark_sharding(ramp({8}), first(), P("x"));
  for (const auto& use : std::vector<std::function<void()>>{
           [] { init_device_mesh("nowhere", {2}); }, [&] { check_devices(nowhere); },
           [&] { mark_sharding(ramp({8}), nowhere, P("x")).to_host(); },
           [&] { mark_sharding(ramp({8}) * 2, nowhere, P("x")).to_host(); },
           [&] { transfer(placed, nowhere, P("x")); }})
    EXPECT_TRUE(throws_error(use, ErrorCode::kNotFound,
                             {"platforms_test.cc:", "device type nowhere", "MESHARD_PLUGIN_NOWHERE",
                              "RuntimeOptions::platforms"}));
}

TEST_F(Platforms, ThreadsOnBoth) {
  auto step = jit([](Tensor x) { return x * 0.5f + 1; });
  std::vector<std::thread> threads;
  std::vector<float> last(4, -1.0f);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Mesh mine = t % 2 == 0 ? first() : second();
      Mesh other = t % 2 == 0 ? second() : first();
      Tensor x = mark_sharding(ramp({8}), mine, P("x"));
      for (int i = 0; i < 40; ++i) {
        x = step(x);
        if (i % 10 == 9) x = transfer(transfer(x, other, P("x")), mine, P("x"));
      }
      last[static_cast<std::size_t>(t)] = values(x)[7];
    });
  for (std::thread& each : threads) each.join();
  for (float value : last) EXPECT_NEAR(value, 2.0f, 1e-5f);  // x = x / 2 + 1 converges to 2
}

TEST_F(Platforms, ATraceTellsTheirDevicesApart) {
  auto step = jit([](Tensor x) { return x + 5; });
  Tensor a = mark_sharding(ramp({8}), first(), P("x"));
  Tensor b = mark_sharding(ramp({8}), second(), P("x"));
  sync({step(a), step(b)});
  TraceSession trace = start_trace();
  sync({step(a), step(b)});
  trace.stop();
  std::set<std::pair<std::string, int>> devices;
  for (const TraceEvent& event : trace.events())
    if (event.category == "execute") devices.insert({event.platform, event.number});
  EXPECT_EQ(devices.size(), 8u);
  EXPECT_TRUE(devices.contains({"cpu", 0}) && devices.contains({"second", 0}));
  std::string json = trace.to_json();
  for (const char* name : {"\"devices of cpu\"", "\"devices of second\""})
    EXPECT_NE(json.find(name), std::string::npos) << name;
}

TEST_F(Platforms, ExplainShowsWhereAFunctionRuns) {
  auto step = jit([](Tensor x) { return sum(x * 2); });
  EXPECT_EQ(step(mark_sharding(ramp({8}), second(), P("x"))).item<float>(), 56);
  EXPECT_NE(explain(step).to_string().find("all-reduce"), std::string::npos);
}

TEST_F(Platforms, ARestartReplacesBothClients) {
  auto step = jit([](Tensor x) { return x + 1; });
  Tensor a = step(mark_sharding(ramp({8}), first(), P("x")));
  Tensor b = step(mark_sharding(ramp({8}), second(), P("x")));
  sync({a, b});
  const pjrt::Client *one = &runtime_client(), *two = &runtime_client("second");
  restart_runtime();
  EXPECT_TRUE(started_clients().empty());
  a = step(a);
  b = step(b);
  EXPECT_EQ(values(a), values(b));
  EXPECT_EQ(values(b)[0], 2);
  EXPECT_NE(&runtime_client(), one);
  EXPECT_NE(&runtime_client("second"), two);
  EXPECT_EQ(b.placement(), "devices 0,1,2,3 of second");
}

}  // namespace
}  // namespace meshard

// Tests the faulty plugin itself, in front of the fake plugin.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <latch>

#include "meshard/base/stall_report.h"
#include "tests/faulty_plugin/control.h"
#include "tests/plugin/fixture.h"
#include "tests/support/matchers.h"

namespace meshard::pjrt {
namespace {

struct Faulty {
  Faulty() {
    setenv("MESHARD_FAULTY_PLUGIN", MESHARD_FAKE_PLUGIN, 1);
    library = dlopen(MESHARD_FAULTY, RTLD_NOW);
    if (library == nullptr) throw std::runtime_error(dlerror());
  }
  void* library;
};

const Faulty& faulty() {
  static const Faulty instance;
  return instance;
}

#define FAULTY(name) \
  reinterpret_cast<decltype(&faulty_##name)>(dlsym(faulty().library, "faulty_" #name))

class FaultyPlugin : public ::testing::Test {
 protected:
  FaultyPlugin() : fake_(MESHARD_FAKE_PLUGIN) {
    fake_.reset();
    FAULTY(set)(nullptr);
    FAULTY(forget_calls)();
  }
  ~FaultyPlugin() override {
    FAULTY(set)(nullptr);
    EXPECT_EQ(FAULTY(live_objects)(), 0);
    EXPECT_EQ(fake_.live_objects(), 0);
  }
  static Plugin plugin() { return Plugin::load(MESHARD_FAULTY).value(); }
  static void set(FaultKind kind, const char* entry, int call = 1, int device = -1) {
    Fault fault{kind, call, entry, device, 8, "injected", 1};
    FAULTY(set)(&fault);
  }
  static testing::AssertionResult is_injected(const std::function<void()>& action,
                                              std::string entry) {
    return throws_error(action, ErrorCode::kResourceExhausted, {"injected", std::move(entry)});
  }
  FakeControl fake_;
};

TEST_F(FaultyPlugin, PassesCallsOnAndCountsThem) {
  Client client = make_client(plugin(), 2);
  EXPECT_EQ(client.platform(), "fake");
  FAULTY(forget_calls)();
  int destroyed = FAULTY(call_count)("PJRT_Buffer_Destroy");
  {
    Buffer buffer = send(client, client.device(1), {1, 2});
    EXPECT_EQ(read_all<float>(buffer)[1], 2.0f);
  }
  EXPECT_STREQ(FAULTY(call_name)(1), "PJRT_Client_BufferFromHostBuffer");
  EXPECT_STREQ(FAULTY(call_name)(2), "PJRT_Buffer_ToHostBuffer");
  EXPECT_TRUE(FAULTY(call_gives_event)(1));
  EXPECT_STREQ(FAULTY(call_name)(FAULTY(calls)() + 1), "");
  EXPECT_EQ(FAULTY(call_count)("PJRT_Buffer_Destroy"), destroyed + 1) << "counted, but no call";
}

TEST_F(FaultyPlugin, TheChosenCallFailsAndNoOther) {
  Client client = make_client(plugin(), 2);
  set(kFaultError, "PJRT_Client_BufferFromHostBuffer", 2);
  int sent = fake_.call_count("PJRT_Client_BufferFromHostBuffer");
  auto one = [&] { send(client, client.device(0), {1}); };
  one();
  EXPECT_EQ(FAULTY(hits)(), 0);
  EXPECT_TRUE(is_injected(one, "PJRT_Client_BufferFromHostBuffer"));
  EXPECT_EQ(FAULTY(hits)(), 1);
  EXPECT_STREQ(FAULTY(hit_entry)(), "PJRT_Client_BufferFromHostBuffer");
  one();
  EXPECT_EQ(fake_.call_count("PJRT_Client_BufferFromHostBuffer"), sent + 2);
  set(kFaultError, nullptr);  // the next call, of any entry
  EXPECT_TRUE(is_injected(one, "PJRT_Client_BufferFromHostBuffer"));
}

TEST_F(FaultyPlugin, CallsForADeviceAreCountedApart) {
  Client client = make_client(plugin(), 2);
  set(kFaultError, "PJRT_Client_BufferFromHostBuffer", 1, 1);
  send(client, client.device(0), {1});
  send(client, client.device(0), {1});
  EXPECT_EQ(FAULTY(matches)(), 0);
  EXPECT_TRUE(is_injected([&] { send(client, client.device(1), {1}); }, "BufferFromHostBuffer"));
  EXPECT_EQ(FAULTY(matches)(), 1);
}

TEST_F(FaultyPlugin, ALateCallSucceeds) {
  Client client = make_client(plugin(), 1);
  set(kFaultLate, "PJRT_Client_BufferFromHostBuffer");
  EXPECT_EQ(read_all<float>(send(client, client.device(0), {5}))[0], 5.0f);
  EXPECT_EQ(FAULTY(hits)(), 1);
}

TEST_F(FaultyPlugin, OneDeviceOfALaunchFailsAndWhateverReadsItsResults) {
  Client client = make_client(plugin(), 4);
  auto program = client.compile(pass_on(4, 1), on_first(4)).value();
  Arguments arguments(client, program);
  int launches = FAULTY(launches)();
  set(kFaultErrorEvent, "PJRT_LoadedExecutable_Execute", 1, 2);
  auto result = execute(program, arguments.pointers).value();
  FAULTY(set)(nullptr);
  EXPECT_EQ(FAULTY(launches)(), launches + 1);
  EXPECT_TRUE(is_injected([&] { result.launch.await().value(); }, "Execute"));
  std::atomic<int> failed = 0;
  std::latch called(4);  // from any thread
  for (std::size_t d = 0; d < 4; ++d)
    result.launch
        .on_ready(d,
                  [&](const Result<void>& outcome) {
                    failed += !outcome.ok();
                    called.count_down();
                  })
        .value();
  called.wait();
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(read_all<float>(result.outputs[0][1]), Arguments::values(1, 0));
  EXPECT_TRUE(is_injected([&] { read_all<float>(result.outputs[0][2]); }, "PJRT_Event_Await"));
  EXPECT_TRUE(is_injected([&] { result.outputs[0][2].await_ready().value(); }, "PJRT_"));
  Buffer copy = result.outputs[0][2].copy_to_device(client.device(0)).value();
  EXPECT_TRUE(is_injected([&] { copy.await_ready().value(); }, "PJRT_"));
  auto second = execute(program, pointers_to(result.outputs)).value();
  EXPECT_TRUE(is_injected([&] { second.launch.await().value(); }, "Execute"));
  EXPECT_TRUE(is_injected([&] { read_all<float>(second.outputs[0][2]); }, "PJRT_Event_Await"));
  EXPECT_EQ(read_all<float>(second.outputs[0][3]), Arguments::values(3, 0));
}

TEST_F(FaultyPlugin, PartnersOfADeviceThatFailedWait) {
  Client client = make_client(plugin(), 2);
  auto program = client.compile(pass_on(2, 1), on_first(2)).value();
  Arguments arguments(client, program);
  set(kFaultDeserted, nullptr, 1, 1);
  auto result = execute(program, arguments.pointers).value();
  auto is_ready = [&](int d) {
    return result.outputs[0][static_cast<std::size_t>(d)].ready_event().value().is_ready().value();
  };
  EXPECT_FALSE(is_ready(0));
  EXPECT_TRUE(is_ready(1));
  EXPECT_TRUE(is_injected([&] { result.outputs[0][1].await_ready().value(); }, "PJRT_"));
  FAULTY(release_events)();
  EXPECT_TRUE(is_ready(0));
  EXPECT_EQ(read_all<float>(result.outputs[0][0]), Arguments::values(0, 0));
}

TEST_F(FaultyPlugin, AnEventIsHeldBackUntilItIsReleased) {
  Client client = make_client(plugin(), 1);
  Buffer buffer = send(client, client.device(0), {5});
  set(kFaultStuckEvent, "PJRT_Buffer_ReadyEvent");
  Event stuck = buffer.ready_event().value();
  std::latch fired(1);  // from any thread
  stuck.on_ready([&](const Result<void>&) { fired.count_down(); }).value();
  EXPECT_FALSE(stuck.is_ready().value());
  EXPECT_FALSE(fired.try_wait());
  FAULTY(release_events)();
  fired.wait();
  EXPECT_TRUE(stuck.is_ready().value());
  stuck.await().value();
}

TEST_F(FaultyPlugin, AnEventThatNeverFiresIsReportedAndTheWaitGoesOn) {
  Client client = make_client(plugin(), 2);
  auto program = client.compile(pass_on(2, 1), on_devices({0, 1})).value();
  Arguments arguments(client, program);
  set_stall_time(std::chrono::milliseconds(10));
  std::vector<std::string> stalls;
  set_stall_handler([&](const Stall& stall) {
    stalls.push_back(stall.text);
    FAULTY(release_events)();
  });
  set(kFaultStuckEvent, "PJRT_LoadedExecutable_Execute", 1, 1);
  SourceLocation here = SourceLocation::current();
  auto result = execute(program, arguments.pointers, {.where = here}).value();
  client.await_launches();
  set_stall_handler({});
  set_stall_time(std::chrono::seconds(60));
  ASSERT_EQ(stalls.size(), 1u) << "once";
  for (const std::string& part :
       {cat("launched at ", here), std::string("devices 0,1"), std::string("not finished on 1")})
    EXPECT_NE(stalls[0].find(part), std::string::npos) << part << " is not in: " << stalls[0];
  EXPECT_EQ(read_all<float>(result.outputs[0][1]), Arguments::values(1, 0));
}

TEST_F(FaultyPlugin, AnEventsErrorStaysWithItWhereTheBufferIsRight) {
  Client client = make_client(plugin(), 1);
  Buffer buffer = send(client, client.device(0), {5});
  set(kFaultErrorEvent, "PJRT_Buffer_ReadyEvent");
  EXPECT_TRUE(is_injected([&] { buffer.await_ready().value(); }, "PJRT_"));
  buffer.await_ready().value();
  EXPECT_EQ(read_all<float>(buffer)[0], 5.0f);
}

// In a child process, because the environment is read only once.
[[noreturn]] void create_as_the_environment_says() {
  setenv("MESHARD_FAULT", "kind=error,call=2,entry=PJRT_Client_Create,code=10,message=a, b", 1);
  bool first = Client::create(Plugin::load(MESHARD_FAULTY).value()).ok();
  auto second = Client::create(Plugin::load(MESHARD_FAULTY).value());
  std::fprintf(stderr, "%d %s", first, second.ok() ? "no error" : second.error().what());
  std::exit(0);
}

TEST(FaultyPluginDeathTest, TheEnvironmentMayNameTheFault) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  faulty();
  EXPECT_EXIT(create_as_the_environment_says(), testing::ExitedWithCode(0),
              "1 .*PJRT_Client_Create. a, b");
}

}  // namespace
}  // namespace meshard::pjrt

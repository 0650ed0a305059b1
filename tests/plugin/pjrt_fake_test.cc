// Behavior that needs a plugin that fails, lags or is old on demand.
#include <algorithm>
#include <thread>

#include "pjrt/pjrt_c_api.h"
#include "tests/plugin/fixture.h"
#include "tests/support/matchers.h"

namespace meshard::pjrt {
namespace {

class FakeTest : public ::testing::Test {
 protected:
  FakeTest() : fake_(MESHARD_FAKE_PLUGIN) { fake_.reset(); }
  ~FakeTest() override {
    EXPECT_EQ(fake_.live_objects(), 0) << "something was not freed";
    fake_.reset();
  }
  Plugin plugin() const { return Plugin::adopt(fake_.api()).value(); }
  FakeControl fake_;
};

TEST_F(FakeTest, RefusesVersionsItCannotUse) {
  auto adopt = [&] { Plugin::adopt(fake_.api(), "x.so").value(); };
  fake_.set_version(1, 0);
  EXPECT_TRUE(throws_error(adopt, ErrorCode::kUnimplemented, {"x.so", "1.0", "major version 0"}));
  fake_.set_version(0, 39);
  EXPECT_TRUE(throws_error(adopt, ErrorCode::kUnimplemented, {"0.39", "too old", "0.40"}));
  fake_.set_version(0, 500);
  adopt();
  fake_.reset();
  fake_.set_table_size(200);
  EXPECT_TRUE(throws_error(adopt, ErrorCode::kUnimplemented, {"table of 200 bytes"}));
  EXPECT_FALSE(Plugin::adopt(nullptr).ok());
  EXPECT_EQ(Plugin::load("/no/such/plugin.so").error().code(), ErrorCode::kNotFound);
}

// Also without a report of the undefined-behavior checks, to which 1000 is not a value of the enum.
TEST_F(FakeTest, ExtensionsOfNewerPluginsAreListed) {
  const Plugin newer = plugin();
  const std::vector<Extension>& extensions = newer.extensions();
  ASSERT_EQ(extensions.size(), 1u);
  EXPECT_EQ(extensions[0].type, 1000);
  EXPECT_EQ(extensions[0].name(), "unknown");
  EXPECT_TRUE(newer.has_extension(1000));
  EXPECT_FALSE(newer.has_extension(5));
}

TEST_F(FakeTest, AFileThatIsNoPluginIsRefused) {
  EXPECT_TRUE(throws_error([] { Plugin::load("/proc/self/status").value(); },
                           ErrorCode::kFailedPrecondition, {"cannot load"}));
}

TEST_F(FakeTest, ALogLevelThatIsNoneIsRefused) {
  ::setenv("MESHARD_PLUGIN_LOG", "many", 1);
  Result<Plugin> plugin = Plugin::load("/proc/self/status");
  ::unsetenv("MESHARD_PLUGIN_LOG");
  ASSERT_FALSE(plugin.ok());
  EXPECT_EQ(plugin.error().message(),
            "[environment] MESHARD_PLUGIN_LOG is 'many': expected a whole number from 0 to 3");
}

TEST_F(FakeTest, MissingEntriesAreNamed) {
  fake_.remove_entry("PJRT_Executable_Serialize");
  fake_.remove_entry("PJRT_Client_CreateUninitializedBuffer");
  auto missing = plugin().missing_entries();
  EXPECT_EQ(std::count(missing.begin(), missing.end(), "PJRT_Client_CreateUninitializedBuffer"), 1);
  Client client = make_client(plugin(), 2);
  auto program = client.compile(pass_on(2, 1), on_first(2)).value();
  EXPECT_TRUE(throws_error([&] { program.executable().serialize().value(); },
                           ErrorCode::kUnimplemented, {"0.81", "PJRT_Executable_Serialize"}));
  EXPECT_EQ(client.uninitialized_buffer({ElementType::kF32, {4}}, client.device(0)).error().code(),
            ErrorCode::kUnimplemented);
}

TEST_F(FakeTest, AShortTableHidesItsLaterEntries) {
  // Removes all entries after OutputDimensions, the last entry that meshard requires.
  fake_.set_table_size(offsetof(PJRT_Api, PJRT_Executable_OutputDimensions) + sizeof(void*));
  Client client = make_client(plugin(), 2);
  auto program = client.compile(pass_on(2, 1), on_first(2)).value();
  EXPECT_EQ(program.executable().fingerprint().error().code(), ErrorCode::kUnimplemented);
  Arguments arguments(client, program);
  EXPECT_EQ(read_all<float>(execute(program, arguments.pointers).value().outputs[0][1]),
            Arguments::values(1, 0));
}

TEST_F(FakeTest, LaunchIdsAreUniqueAndNeverZero) {
  Client client = make_client(plugin(), 2);
  Client second = make_client(plugin(), 2);
  auto program = client.compile(pass_on(2, 1), on_first(2)).value();
  auto other = second.compile(pass_on(2, 1), on_first(2)).value();
  Arguments arguments(client, program), others(second, other);
  for (int i = 0; i < 10; ++i) {
    EXPECT_GT(execute(program, arguments.pointers).value().launch.id(), 0);
    (void)execute(other, others.pointers).value();
  }
  std::vector<int> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(fake_.launch_id(i));
  std::sort(ids.begin(), ids.end());
  EXPECT_GT(ids[0], 0);
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  EXPECT_EQ(fake_.launch_id(20), -1);
}

TEST_F(FakeTest, TheCpuRulesBoundLaunchesAndABetterPluginIsNotSlowedDown) {
  for (bool cpu : {true, false}) {
    fake_.reset();
    fake_.set_platform(cpu ? "cpu" : "fake");
    // Where the number of launches is limited, they have to complete by themselves; elsewhere none
    // completes before all are accepted.
    fake_.set_run_time(cpu ? 20000 : 0);
    fake_.hold_runs(cpu ? 0 : 1);
    Client client = make_client(plugin(), 2);
    EXPECT_EQ(client.rules().max_in_flight, cpu ? 31 : 0);
    auto program = client.compile(pass_on(2, 1), on_first(2)).value();
    Arguments arguments(client, program);
    std::vector<Launch> launches;
    std::vector<BufferList> outputs(1);
    for (int i = 0; i < 50; ++i)
      launches.push_back(program.execute(arguments.pointers, outputs).value());
    fake_.hold_runs(0);
    for (const Launch& launch : launches) launch.await().value();
    if (cpu)
      EXPECT_LE(fake_.most_in_flight(), 31);
    else
      EXPECT_EQ(fake_.most_in_flight(), 50);
  }
}

TEST_F(FakeTest, AnErrorInsideTheWedgingPluginIsNotFollowedByAHang) {
  fake_.set_platform("cpu");
  Client client = make_client(plugin(), 2);
  auto program = client.compile(pass_on(2, 1), on_first(2)).value();
  auto single = client.compile(pass_on(1, 1), on_first(1)).value();
  Arguments arguments(client, program), one(client, single);
  fake_.fail_at("PJRT_LoadedExecutable_Execute", 1, 8, "out of memory on purpose");
  auto launch = [&] { (void)execute(program, arguments.pointers).value(); };
  EXPECT_TRUE(throws_error(launch, ErrorCode::kResourceExhausted, {"out of memory on purpose"}));
  EXPECT_TRUE(throws_error(launch, ErrorCode::kFailedPrecondition, {"create a new client"}));
  EXPECT_TRUE(execute(single, one.pointers).ok()) << "one device is not affected";
  Client fresh = make_client(plugin(), 2);
  auto again = fresh.compile(pass_on(2, 1), on_first(2)).value();
  Arguments more(fresh, again);
  EXPECT_TRUE(execute(again, more.pointers).ok());
}

TEST_F(FakeTest, AFailedLaunchGivesDonatedArgumentsBack) {
  Client client = make_client(plugin(), 2);
  auto program = client.compile(pass_on(2, 2, true), on_first(2)).value();
  Arguments arguments(client, program);
  fake_.fail_at("PJRT_LoadedExecutable_Execute", 1, 13, "no");
  EXPECT_FALSE(execute(program, arguments.pointers).ok());
  for (const BufferList& list : arguments.lists) EXPECT_TRUE(list.is_live());
  EXPECT_TRUE(execute(program, arguments.pointers).ok());
}

TEST_F(FakeTest, DeviceByDeviceFailureInTheMiddleFreesTheEarlierOutputs) {
  Client client = make_client(plugin(), 4);
  auto program = client.compile(pass_on(4, 1), on_first(4)).value();
  Arguments arguments(client, program);
  std::vector<BufferList> outputs(1);
  fake_.fail_at("PJRT_LoadedExecutable_Execute", 3, 13, "third device");
  EXPECT_TRUE(
      throws_error([&] { (void)program.execute_each_device(arguments.pointers, outputs).value(); },
                   ErrorCode::kInternal, {"third device"}));
  EXPECT_FALSE(outputs[0]) << "what the caller held is untouched";
}

TEST_F(FakeTest, ErrorsOfARunAreValuesOfItsCompletion) {
  fake_.set_run_time(2000);
  fake_.fail_runs(13);
  Client client = make_client(plugin(), 2);
  auto program = client.compile(pass_on(2, 1), on_first(2)).value();
  Arguments arguments(client, program);
  auto result = execute(program, arguments.pointers).value();
  EXPECT_FALSE(result.launch.is_ready().value());
  for (int i = 0; i < 2; ++i)  // it can be queried again
    EXPECT_TRUE(throws_error([&] { result.launch.await().value(); }, ErrorCode::kInternal,
                             {"as the test asked"}));
  EXPECT_TRUE(result.launch.is_ready().value());
  EXPECT_TRUE(throws_error([&] { result.outputs[0][0].await_ready().value(); },
                           ErrorCode::kInternal, {"as the test asked"}));
  Event ready = result.outputs[0][1].ready_event().value();
  ErrorCode seen{};
  ready.on_ready([&](const Result<void>& outcome) { seen = outcome.error().code(); }).value();
  finish_callbacks();
  EXPECT_EQ(seen, ErrorCode::kInternal);
}

TEST_F(FakeTest, UntrackedLaunchesHaveNoCompletion) {
  Client client = make_client(plugin(), 2);
  auto program = client.compile(pass_on(2, 1), on_first(2)).value();
  Arguments arguments(client, program);
  auto result = execute(program, arguments.pointers, {.track = false}).value();
  EXPECT_EQ(result.launch.id(), 0);
  EXPECT_TRUE(result.launch.is_ready().value());
  result.launch.await().value();
}

TEST_F(FakeTest, EveryFailingCallBecomesAnError) {
  Client client = make_client(plugin(), 2);
  auto fails = [&](const char* entry, auto action) {
    fake_.fail_at(entry, 1, 14, "injected");
    EXPECT_TRUE(throws_error(action, ErrorCode::kUnavailable, {entry, "injected"}));
  };
  fails("PJRT_Client_Create", [&] { make_client(plugin()); });
  fails("PJRT_Plugin_Initialize", [&] { plugin(); });
  fails("PJRT_Client_Compile", [&] { client.compile(pass_on(2, 1), on_first(2)).value(); });
  fails("PJRT_Executable_OptimizedProgram",
        [&] { client.compile(pass_on(2, 1), on_first(2)).value(); });
  fails("PJRT_Client_BufferFromHostBuffer", [&] { send(client, client.device(0), {1}); });
  Buffer buffer = send(client, client.device(0), {1, 2, 3, 4});
  std::vector<std::byte> bytes(16);
  fails("PJRT_Buffer_ToHostBuffer", [&] { buffer.read(bytes).value(); });
  fails("PJRT_Buffer_ReadyEvent", [&] { buffer.await_ready().value(); });
  fails("PJRT_Event_Await", [&] { buffer.await_ready().value(); });
  fails("PJRT_Buffer_CopyToDevice", [&] { buffer.copy_to_device(client.device(1)).value(); });
  fails("PJRT_Buffer_Delete", [&] { buffer.delete_now().value(); });
}

TEST_F(FakeTest, DevicesInAnotherOrderKeepTheirIds) {
  fake_.reverse_devices(1);
  Client client = make_client(plugin(), 4);
  EXPECT_EQ(client.device(0).id(), 3);
  EXPECT_EQ(client.find_device(3), &client.device(0));
  CompileOptions options;
  options.num_partitions = 2;  // no device assignment: the client's first two devices
  auto program = client.compile(pass_on(2, 1), options).value();
  EXPECT_EQ(program.devices()[0]->id(), 3);
  EXPECT_EQ(program.devices()[1]->id(), 2);
}

TEST_F(FakeTest, HostMemoryIsNotReadInPlaceWhereThePlatformDoesNotAllowIt) {
  Client client = make_client(plugin(), 1);
  Buffer buffer = send(client, client.device(0), {1, 2, 3, 4});
  EXPECT_EQ(buffer.host_view().error().code(), ErrorCode::kUnimplemented);
  EXPECT_EQ(read_all<float>(buffer)[3], 4.0f);
  EXPECT_EQ(fake_.call_count("PJRT_Buffer_UnsafePointer"), 0);
}

TEST_F(FakeTest, ThePluginWouldNoticeWhatOurChecksKeepFromIt) {
  // Tests the trap itself: without our checks, the fake plugin wedges like the CPU plugin.
  fake_.set_trap(kFakeWedge);
  Client client = make_client(plugin(), 2);
  auto program = client.compile(pass_on(2, 1), on_first(2)).value();
  ExecutableSignature wrong = program.signature();
  wrong.parameters[0].dimensions[0] = 3;
  std::string bytes = program.executable().serialize().value();
  auto lied_to = client.deserialize_and_load(bytes, nullptr, &wrong).value();
  std::vector<Buffer> buffers;
  for (int d = 0; d < 2; ++d) buffers.push_back(send(client, client.device(d), {1, 2, 3}));
  const BufferList list = BufferList::of(buffers);
  EXPECT_TRUE(throws_error([&] { (void)execute(lied_to, std::vector{&list}).value(); },
                           ErrorCode::kInvalidArgument, {"wrong type"}));
  EXPECT_EQ(fake_.invalid_calls(), 1);
  Arguments arguments(client, program);
  auto result = execute(program, arguments.pointers).value();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(result.launch.is_ready().value()) << "wedged";
}

}  // namespace
}  // namespace meshard::pjrt

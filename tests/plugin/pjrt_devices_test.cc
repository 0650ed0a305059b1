// Behavior that only the fake plugin shows on demand: one device that fails or lags, host memory
// used in place, transfers in chunks, and devices of other processes.
#include <latch>

#include "tests/plugin/fixture.h"
#include "tests/support/matchers.h"

namespace meshard::pjrt {
namespace {

class FakeDevices : public ::testing::Test {
 protected:
  FakeDevices() : fake_(MESHARD_FAKE_PLUGIN) { fake_.reset(); }
  ~FakeDevices() override {
    EXPECT_EQ(fake_.invalid_calls(), 0);
    EXPECT_EQ(fake_.external_references(), 0);
    EXPECT_EQ(fake_.live_objects(), 0) << "something was not freed";
    fake_.reset();
  }
  Plugin plugin() const { return Plugin::adopt(fake_.api()).value(); }
  static constexpr int kInternal = static_cast<int>(ErrorCode::kInternal);
  FakeControl fake_;
};

TEST_F(FakeDevices, OneDeviceOfOneLaunchFails) {
  Client client = make_client(plugin(), 4);
  auto program = client.compile(pass_on(4, 1), on_first(4)).value();
  Arguments arguments(client, program);
  fake_.fail_shard(2, 3, kInternal);
  auto first = execute(program, arguments.pointers).value();
  auto second = execute(program, arguments.pointers).value();
  auto third = execute(program, arguments.pointers).value();
  first.launch.await().value();
  EXPECT_TRUE(throws_error([&] { second.launch.await().value(); }, ErrorCode::kInternal,
                           {"the run failed as the test asked"}));
  third.launch.await().value();
  EXPECT_TRUE(throws_error([&] { second.outputs[0][3].await_ready().value(); },
                           ErrorCode::kInternal, {"the run failed as the test asked"}));
  EXPECT_EQ(read_all<float>(second.outputs[0][2]), Arguments::values(2, 0));
}

TEST_F(FakeDevices, OneDeviceLags) {
  Client client = make_client(plugin(), 2);
  auto program = client.compile(pass_on(2, 1), on_first(2)).value();
  Arguments arguments(client, program);
  fake_.delay_shard(1, 1, -1);
  auto result = execute(program, arguments.pointers).value();
  EXPECT_TRUE(result.outputs[0][0].ready_event().value().is_ready().value());
  EXPECT_FALSE(result.outputs[0][1].ready_event().value().is_ready().value());
  EXPECT_FALSE(result.launch.is_ready().value());
  fake_.hold_runs(0);
  result.launch.await().value();
  fake_.delay_shard(1, 0, 1000);
  execute(program, arguments.pointers).value().launch.await().value();
  EXPECT_EQ(read_all<float>(result.outputs[0][1]), Arguments::values(1, 0));
}

TEST_F(FakeDevices, LaunchesAreHeld) {
  Client client = make_client(plugin(), 2);
  auto program = client.compile(pass_on(2, 1), on_first(2)).value();
  Arguments arguments(client, program);
  fake_.hold_runs(1);
  auto result = execute(program, arguments.pointers).value();
  std::latch called(2);  // from any thread
  for (std::size_t d = 0; d < 2; ++d)
    result.launch.on_ready(d, [&](const Result<void>&) { called.count_down(); }).value();
  EXPECT_FALSE(result.launch.is_ready().value());
  EXPECT_FALSE(called.try_wait());
  fake_.hold_runs(0);
  called.wait();
  EXPECT_TRUE(result.launch.is_ready().value());
}

TEST_F(FakeDevices, OfProcessesThatThePluginDoesNotKnow) {
  NamedValue count = device_count_option(2);
  ProcessDevices run{.process = 1, .counts = {3, 2, 1}};
  Client client = Client::create(plugin(), {&count, 1}, {}, {}, &run).value();
  EXPECT_EQ(client.process_index(), 1);
  std::vector<int> processes, addressable;
  for (std::size_t i = 0; i < client.device_count(); ++i) {
    const Device& device = client.device(i);
    EXPECT_EQ(device.id(), static_cast<int>(i));
    EXPECT_EQ(client.find_device(device.id()), &device);
    EXPECT_EQ(device.to_string(), cat("device ", i));
    processes.push_back(device.process_index());
    if (device.addressable()) addressable.push_back(device.plugin_id());
  }
  EXPECT_EQ(processes, (std::vector<int>{0, 0, 0, 1, 1, 2}));
  EXPECT_EQ(addressable, (std::vector<int>{0, 1}));
  EXPECT_EQ(client.addressable_devices()[1]->id(), 4);

  auto program = client.compile(pass_on(1, 1), on_devices({4})).value();
  EXPECT_EQ(program.devices()[0], client.find_device(4));
  Buffer buffer = send(client, *client.find_device(4), {1, 2, 3, 4});
  const BufferList argument = list_of(std::move(buffer));
  auto result = execute(program, std::vector{&argument}).value();
  EXPECT_EQ(read_all<float>(result.outputs[0][0])[3], 4.0f);

  EXPECT_TRUE(throws_error([&] { client.compile(pass_on(1, 1), on_devices({5})).value(); },
                           ErrorCode::kInvalidArgument, {"device 5 belongs to process 2"}));
  EXPECT_TRUE(throws_error([&] { send(client, client.device(0), {1}); },
                           ErrorCode::kInvalidArgument, {"device 0 is not an addressable device"}));
  run.counts = {2, 1, 3};
  EXPECT_TRUE(throws_error(
      [&] {
        Client::create(plugin(), {&count, 1}, {}, {}, &run).value();
      },
      ErrorCode::kInvalidArgument, {"process 1 of 3 has 2 of the plugin's 2 devices"}));
}

TEST_F(FakeDevices, AReadyEventAloneFails) {
  Client client = make_client(plugin(), 1);
  Buffer buffer = send(client, client.device(0), {1, 2});
  fake_.fail_ready_event(1, kInternal);
  EXPECT_TRUE(throws_error([&] { buffer.await_ready().value(); }, ErrorCode::kInternal,
                           {"the event failed as the test asked"}));
  buffer.await_ready().value();
  EXPECT_EQ(read_all<float>(buffer)[1], 2.0f);
}

struct alignas(64) Block {
  float values[16];

  SentBuffer sent_to(const Client& client, HostSemantics semantics) const {
    std::vector<std::int64_t> dimensions = {16};
    return client
        .buffer_from_host({values, ElementType::kF32, dimensions}, semantics, client.device(0))
        .value();
  }
};

TEST_F(FakeDevices, AWritableBlockBelongsToThePluginUntilItsLastBufferGoes) {
  fake_.set_zero_copy(1);
  Client client = make_client(plugin(), 1);
  auto program = client.compile(pass_on(1, 1, /*donate=*/true, 16), on_first(1)).value();
  Block block{};
  block.values[3] = 3;
  SentBuffer sent = block.sent_to(client, HostSemantics::kMutableZeroCopy);
  BufferList argument = list_of(std::move(sent.buffer));
  auto result = execute(program, std::vector<const BufferList*>{&argument}).value();
  EXPECT_FALSE(argument.is_live());
  argument = {};
  EXPECT_FALSE(sent.host_released.is_ready().value()) << "the result lives there";
  block.values[3] = 4;
  EXPECT_EQ(read_all<float>(result.outputs[0][0])[3], 4.0f) << "in place";
  result.outputs.clear();
  EXPECT_TRUE(sent.host_released.is_ready().value());
  EXPECT_NE(block.values[3], 4.0f) << "overwritten before it was released";
}

TEST_F(FakeDevices, ABlockThatIsOnlyReadIsNotWritten) {
  fake_.set_zero_copy(1);
  Client client = make_client(plugin(), 1);
  auto program = client.compile(pass_on(1, 1, /*donate=*/true, 16), on_first(1)).value();
  Block block{};
  block.values[3] = 3;
  SentBuffer sent = block.sent_to(client, HostSemantics::kImmutableZeroCopy);
  BufferList argument = list_of(std::move(sent.buffer));
  auto result = execute(program, std::vector<const BufferList*>{&argument}).value();
  block.values[3] = 4;
  EXPECT_EQ(read_all<float>(result.outputs[0][0])[3], 3.0f) << "memory of its own";
  argument = {};
  EXPECT_TRUE(sent.host_released.is_ready().value());
  EXPECT_EQ(block.values[3], 4.0f);
}

TEST_F(FakeDevices, ViewsHoldReferencesAndGiveThemBack) {
  fake_.set_platform("cpu");
  Client client = make_client(plugin(), 1);
  Buffer buffer = send(client, client.device(0), {1, 2});
  {
    HostView one = buffer.host_view().value();
    EXPECT_EQ(fake_.external_references(), 1);
    HostView two = buffer.host_view().value();
    EXPECT_EQ(fake_.external_references(), 2);
    buffer = {};
    EXPECT_EQ(fake_.external_references(), 2) << "the views keep the bytes";
    EXPECT_EQ(reinterpret_cast<const float*>(two.bytes().data())[1], 2.0f);
  }
  EXPECT_EQ(fake_.external_references(), 0);
  buffer = send(client, client.device(0), {1, 2});
  for (const char* entry :
       {"PJRT_Buffer_ReadyEvent", "PJRT_Event_Await", "PJRT_Buffer_IncreaseExternalReferenceCount",
        "PJRT_Buffer_UnsafePointer"}) {
    fake_.fail_at(entry, 1, 14, "injected");
    EXPECT_TRUE(throws_error([&] { (void)buffer.host_view().value(); }, ErrorCode::kUnavailable,
                             {entry, "injected"}));
    EXPECT_EQ(fake_.external_references(), 0) << entry;
  }
}

TEST_F(FakeDevices, ADonatedBufferThatIsViewedKeepsItsBytes) {
  fake_.set_platform("cpu");
  Client client = make_client(plugin(), 1);
  auto program = client.compile(pass_on(1, 1, /*donate=*/true), on_first(1)).value();
  Arguments arguments(client, program);
  HostView view = arguments.lists[0][0].host_view().value();
  auto result = execute(program, arguments.pointers).value();
  EXPECT_FALSE(arguments.lists[0].is_live());
  arguments.lists.clear();
  result.outputs.clear();
  EXPECT_EQ(reinterpret_cast<const float*>(view.bytes().data())[3], 3.0f);
}

TEST_F(FakeDevices, MemoryInUseIsCounted) {
  Client client = make_client(plugin(), 2);
  const Device &first = client.device(0), &second = client.device(1);
  EXPECT_EQ(first.memory_stats().value().bytes_in_use, 0);
  {
    Buffer buffer = send(client, first, std::vector<float>(16));
    EXPECT_EQ(first.memory_stats().value().bytes_in_use, 64);
    Buffer copy = buffer.copy_to_device(second).value();
    EXPECT_EQ(&copy.device(), &second);
    EXPECT_EQ(second.memory_stats().value().bytes_in_use, 64);
    EXPECT_EQ(read_all<float>(copy), read_all<float>(buffer));
    buffer = {};
    EXPECT_EQ(first.memory_stats().value().bytes_in_use, 0);
  }
  DeviceMemoryStats stats = second.memory_stats().value();
  EXPECT_EQ(stats.bytes_in_use, 0);
  EXPECT_EQ(stats.peak_bytes_in_use, 64);
  EXPECT_EQ(stats.bytes_limit, std::nullopt);
}

TEST_F(FakeDevices, BuffersArriveInPieces) {
  Client client = make_client(plugin(), 2);
  std::vector<ArrayType> types(2, ArrayType{ElementType::kF32, {4}});
  std::vector<float> values = {1, 2, 3, 4};
  auto bytes = std::as_bytes(std::span(values));
  auto begun = client.begin_transfer(types, client.device(1)).value();
  Buffer whole = begun.take_buffer(0).value(), never = begun.take_buffer(1).value();
  begun.send(0, bytes.subspan(8), 8, false).value().await().value();
  EXPECT_FALSE(whole.ready_event().value().is_ready().value());
  begun.send(0, bytes.first(8), 0, true).value().await().value();
  EXPECT_TRUE(whole.ready_event().value().is_ready().value());
  EXPECT_EQ(read_all<float>(whole), values);
  begun.set_error(1, Error(ErrorCode::kDataLoss, "the file ends here")).value();
  EXPECT_TRUE(throws_error([&] { never.await_ready().value(); }, ErrorCode::kDataLoss,
                           {"the file ends here"}));
  for (const char* entry : {"PJRT_Client_CreateBuffersForAsyncHostToDevice",
                            "PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer",
                            "PJRT_AsyncHostToDeviceTransferManager_BufferSize",
                            "PJRT_AsyncHostToDeviceTransferManager_TransferData"}) {
    fake_.fail_at(entry, 1, 14, "injected");
    auto transfer = [&] {
      auto again = client.begin_transfer(types, client.device(0)).value();
      Buffer buffer = again.take_buffer(0).value();
      again.send(0, bytes, 0, true).value().await().value();
    };
    EXPECT_TRUE(throws_error(transfer, ErrorCode::kUnavailable, {entry, "injected"}));
  }
}

TEST_F(FakeDevices, DevicesOfAnotherProcessAreKnownAndNotUsed) {
  fake_.set_processes(2, 1);
  Client client = make_client(plugin(), 4);
  EXPECT_EQ(client.device_count(), 4u);
  ASSERT_EQ(client.addressable_devices().size(), 2u);
  EXPECT_EQ(client.addressable_devices()[0]->id(), 2);
  const Device& far = *client.find_device(1);
  EXPECT_FALSE(far.addressable());
  EXPECT_EQ(far.process_index(), 0);
  EXPECT_EQ(far.local_hardware_id(), -1);
  EXPECT_EQ(client.device(3).process_index(), 1);
  auto refused = [&](auto action) {
    EXPECT_TRUE(throws_error(action, ErrorCode::kInvalidArgument, {"device 1"}));
  };
  refused([&] { send(client, far, {1}); });
  refused([&] {
    (void)client.begin_transfer(std::vector{ArrayType{ElementType::kF32, {4}}}, far).value();
  });
  Buffer buffer = send(client, client.device(2), {1});
  refused([&] { (void)buffer.copy_to_device(far).value(); });
}

}  // namespace
}  // namespace meshard::pjrt

// Makes each call to the fake plugin fail in turn: each failure must become an error that names it.
#include <functional>

#include "tests/plugin/fixture.h"
#include "tests/support/matchers.h"

namespace meshard::pjrt {
namespace {

class FaultTest : public ::testing::Test {
 protected:
  FaultTest() : fake_(MESHARD_FAKE_PLUGIN) { fake_.reset(); }
  ~FaultTest() override {
    EXPECT_EQ(fake_.live_objects(), 0) << "something was not freed";
    fake_.reset();
  }
  Plugin plugin() const { return Plugin::adopt(fake_.api()).value(); }
  void fails(const char* entry, const std::function<void()>& action, int k = 1) const {
    fake_.fail_at(entry, k, 14, "injected");
    EXPECT_TRUE(throws_error(action, ErrorCode::kUnavailable, {entry, "injected"}));
  }
  FakeControl fake_;
};

TEST_F(FaultTest, NothingIsMadeUpAboutDevices) {
  auto make = [&] { make_client(plugin(), 2); };
  for (const char* entry :
       {"PJRT_Client_PlatformName", "PJRT_Client_PlatformVersion", "PJRT_Client_ProcessIndex",
        "PJRT_Client_Devices", "PJRT_Client_AddressableDevices", "PJRT_Device_GetDescription",
        "PJRT_DeviceDescription_Id", "PJRT_DeviceDescription_ProcessIndex",
        "PJRT_Device_IsAddressable", "PJRT_Device_LocalHardwareId"})
    fails(entry, make);
  fails("PJRT_DeviceDescription_Id", make, 2);
  fails("PJRT_Device_IsAddressable", make, 2);
  Client client = make_client(plugin(), 2);
  const Device& device = client.device(0);
  fails("PJRT_DeviceDescription_Kind", [&] { (void)device.description().kind().value(); });
  fails("PJRT_DeviceDescription_Attributes",
        [&] { (void)device.description().attributes().value(); });
  for (const char* entry :
       {"PJRT_Device_AddressableMemories", "PJRT_Memory_Id", "PJRT_Memory_Kind"})
    fails(entry, [&] { (void)device.memories().value(); });
  fails("PJRT_Device_DefaultMemory", [&] { (void)device.default_memory().value(); });
  fake_.fail_at("PJRT_DeviceDescription_ToString", 1, 14, "injected");
  EXPECT_EQ(device.to_string(), "device 0");
}

TEST_F(FaultTest, WhatAPluginDoesNotImplementAboutDevicesIsLeftOut) {
  fake_.fail_at("PJRT_Device_LocalHardwareId", 1, 12, "injected");
  Client client = make_client(plugin(), 2);
  EXPECT_EQ(client.device(0).local_hardware_id(), -1);
  EXPECT_EQ(client.device(1).local_hardware_id(), 1);
  fake_.fail_at("PJRT_DeviceDescription_Attributes", 1, 12, "injected");
  EXPECT_TRUE(client.device(0).description().attributes().value().empty());
}

TEST_F(FaultTest, ProgramsAreNotLoadedInHalf) {
  Client client = make_client(plugin(), 2);
  auto compile = [&] { (void)client.compile(pass_on(2, 1), on_first(2)).value(); };
  for (const char* entry :
       {"PJRT_Client_Compile", "PJRT_LoadedExecutable_GetExecutable",
        "PJRT_LoadedExecutable_AddressableDevices", "PJRT_Executable_NumOutputs"})
    fails(entry, compile);
}

TEST_F(FaultTest, ABufferThatCouldNotBeDeletedIsAlive) {
  Client client = make_client(plugin(), 1);
  Buffer buffer = send(client, client.device(0), {1, 2, 3, 4});
  fails("PJRT_Buffer_Delete", [&] { buffer.delete_now().value(); });
  EXPECT_TRUE(buffer.is_live());
  EXPECT_EQ(read_all<float>(buffer)[2], 3.0f);
  buffer.delete_now().value();
  EXPECT_FALSE(buffer.is_live());
}

// A typical use of a plugin, starting with its client. The donated argument comes last.
std::vector<float> whole_program(const Plugin& plugin) {
  Client client = make_client(plugin, 2);
  auto program = client.compile(pass_on(2, 2, /*donate=*/true), on_first(2)).value();
  std::string bytes = program.executable().serialize().value();
  auto again = client.deserialize_and_load(bytes).value();
  Arguments arguments(client, again);
  auto result = execute(again, arguments.pointers).value();
  result.launch.await().value();
  Buffer copy = result.outputs[1][0].copy_to_device(client.device(1)).value();
  copy.await_ready().value();
  std::vector<float> values = read_all<float>(copy);
  result.outputs[0].delete_now().value();
  return values;
}

TEST_F(FaultTest, EveryCallMayFail) {
  Plugin loaded = plugin();
  int before = fake_.call_count(nullptr);
  std::vector<float> expected = whole_program(loaded);
  int calls = fake_.call_count(nullptr) - before;
  ASSERT_GT(calls, 40);
  for (int k = 1; k <= calls; ++k) {
    fake_.fail_at(nullptr, k, 14, "injected");
    try {
      EXPECT_EQ(whole_program(loaded), expected) << "call " << k << " was not missed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable) << error.what();
      EXPECT_THAT(error.what(), testing::HasSubstr("[PJRT_")) << k;
      EXPECT_THAT(error.what(), testing::HasSubstr("injected")) << k;
    }
    fake_.fail_at(nullptr, 0, 0, "");
    EXPECT_EQ(fake_.live_objects(), 0) << "call " << k << " left something behind";
  }
}

}  // namespace
}  // namespace meshard::pjrt

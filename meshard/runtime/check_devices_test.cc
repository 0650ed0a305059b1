#include "meshard/runtime/check_devices.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/runtime/transfer.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using CheckDevices = OnPlugin;

TEST_F(CheckDevices, OfAMeshThatIsThere) {
  check_devices(Mesh({{"x", 2}, {"y", 2}}, {7, 5, 0, 3}));
  check_devices(Mesh({{"x", 2}, {"y", 4}})["y"]);
  check_devices(Mesh({{"x", 8}}).with_device_type(runtime_client().platform()));
}

TEST_F(CheckDevices, NamesWhatIsMissing) {
  EXPECT_TRUE(throws_error(
      [] {
        check_devices(Mesh({{"x", 2}}, {3, 4096}));
      },
      ErrorCode::kNotFound, {"check_devices_test.cc:", "do not exist: 4096;", "0, 1, 2"}));
  // A mesh too large to list.
  EXPECT_TRUE(throws_error(
      [] {
        check_devices(Mesh({{"x", std::int64_t{1} << 50}}));
      },
      ErrorCode::kNotFound, {"more"}));
  // All rows of a slice are checked.
  Mesh rows({{"x", 2}, {"y", 2}}, {0, 1, 2, 5000});
  EXPECT_TRUE(throws_error([&] { check_devices(rows["y"]); }, ErrorCode::kNotFound, {"5000"}));
}

TEST_F(CheckDevices, AMeshOfADeviceTypeWithoutAPluginIsRefusedWhereSomethingIsPlaced) {
  Mesh other = Mesh({{"x", 2}}).with_device_type("elsewhere");
  auto refused = [](auto&& use) {
    return throws_error(use, ErrorCode::kNotFound,
                        {"check_devices_test.cc:", "no plugin for device type elsewhere"});
  };
  EXPECT_TRUE(refused([&] { check_devices(other); }));
  // The cached program for the same devices without a device type must not be used.
  mark_sharding(ones({2}) * 2, Mesh({{"x", 2}}), P("x")).to_host();
  EXPECT_TRUE(refused([&] {
    mark_sharding(from_host(std::vector<float>{1, 2}, {2}), other, P("x"));
  }));
  EXPECT_TRUE(refused([&] { transfer(ones({2}), other, P("x")); }));
  EXPECT_TRUE(refused([&] { mark_sharding(ones({2}) * 2, other, P("x")).to_host(); }));
}

TEST_F(CheckDevices, InitDeviceMesh) {
  std::string platform = runtime_client().platform();
  Mesh mesh = init_device_mesh(platform, {2, 4}, {{"dp", "tp"}});
  EXPECT_EQ(mesh, Mesh({{"dp", 2}, {"tp", 4}}).with_device_type(platform));
  EXPECT_EQ(init_device_mesh("", {2}).device_type(), "");
  EXPECT_EQ(sum(mark_sharding(ones({8, 2}), mesh, P("tp"))).item<float>(), 16);
  EXPECT_TRUE(throws_error([] { init_device_mesh("elsewhere", {2}); }, ErrorCode::kNotFound,
                           {"check_devices_test.cc:", "device type elsewhere"}));
  EXPECT_TRUE(throws_error(
      [&] {
        init_device_mesh(platform, {64, 64});
      },
      ErrorCode::kInvalidArgument, {"64 x 64 needs 4096 devices"}));
  EXPECT_TRUE(throws_error([&] { init_device_mesh(platform, {0}); }, ErrorCode::kInvalidArgument,
                           {"size 0"}));
}

}  // namespace
}  // namespace meshard

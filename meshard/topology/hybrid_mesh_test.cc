#include "meshard/topology/hybrid_mesh.h"

#include "meshard/mesh/device_groups.h"
#include "meshard/topology/tpu_topology.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

Topology tpu(const char* name) { return tpu_topology(name).value(); }

TEST(HybridMesh, OuterIndicesAreSlices) {
  Topology pods = tpu("v5e:4x4*2");
  Mesh mesh = hybrid_mesh(pods, {2, 8}, {2, 1}, MaybeNames({"dp", "tp"}));
  EXPECT_EQ(mesh.axes()[0].name, "dp");
  EXPECT_EQ(mesh.axes()[0].size, 4);
  for (const DeviceAttributes& device : pods.devices())
    EXPECT_EQ((*mesh.coordinate(device.id))[0] / 2, *device.slice_index);
  Mesh inside = hybrid_mesh(pods, {2, 8}, {1, 2});  // the inner index varies faster
  for (const DeviceAttributes& device : pods.devices())
    EXPECT_EQ((*inside.coordinate(device.id))[1] / 8, *device.slice_index);
}

TEST(HybridMesh, GranulesOfProcesses) {
  Topology topology = tpu("v5p:4x4x4");
  Mesh mesh = hybrid_mesh(topology, {1, 4}, {16, 1}, std::nullopt, {.granule = Granule::kProcess});
  for (const DeviceAttributes& device : topology.devices())
    EXPECT_EQ((*mesh.coordinate(device.id))[0], device.process_index);
}

TEST(HybridMesh, ASingleSliceMayHaveAnIndex) {
  std::vector<DeviceAttributes> devices = tpu("v5p:2x2x1").devices();
  for (DeviceAttributes& device : devices) device.slice_index = 0;
  EXPECT_EQ(hybrid_mesh(Topology(devices), {2, 2}, {}), torus_mesh(tpu("v5p:2x2x1"), {2, 2}));
}

TEST(HybridMesh, TwoDevicesOnAChipAreADirection) {
  Mesh mesh = torus_mesh(tpu("v4:2x2x1"), {4, 2});
  // The last axis is the first whole direction of size two, x; the first axis uses y and the chip.
  EXPECT_TRUE(mesh.group({"axis_1"}, 4)->ranks().same_devices(RankMap::listed({4, 6})));
  EXPECT_TRUE(mesh.group({"axis_0"}, 4)->ranks().same_devices(RankMap::listed({0, 1, 4, 5})));
  EXPECT_EQ(torus_mesh(tpu("v4:2x2x1"), {8}, std::nullopt, {.split = AxisSplit::kNever}).size(), 8);
}

// Eight virtual CPUs as two slices of four. The ids are NumPy's reshape and transpose of
// arange(8).reshape(2, 2, 2) for (dp, fsdp, tp), and with the slices along the last axis.
TEST(HybridMesh, DevicesWithoutCoordinatesWhereAllowed) {
  std::vector<DeviceAttributes> devices(8);
  for (int i = 0; i < 8; ++i) devices[static_cast<std::size_t>(i)].id = i;
  Topology cpus(devices);
  HybridOptions allowed{.allow_no_coords = true};
  MaybeNames names({"dp", "fsdp", "tp"});
  EXPECT_EQ(hybrid_mesh(cpus, {1, 2, 2}, {2, 1, 1}, names, allowed),
            Mesh({{"dp", 2}, {"fsdp", 2}, {"tp", 2}}));
  EXPECT_EQ(hybrid_mesh(cpus, {2, 2}, {1, 2}, std::nullopt, allowed).device_ids().to_vector(),
            (std::vector<std::int64_t>{0, 1, 4, 5, 2, 3, 6, 7}));
  EXPECT_EQ(torus_mesh(cpus, {2, 4}, std::nullopt, allowed).rank_map(), RankMap::identity(8));
  auto granules = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error([&] { hybrid_mesh(cpus, {4}, {3}, std::nullopt, allowed); }, granules,
                           {"hybrid_mesh_test.cc", "3"}));
  EXPECT_TRUE(throws_error([&] { hybrid_mesh(cpus, {2}, {2}, std::nullopt, allowed); }, granules,
                           {"needs 2 devices", "are 4"}));
  EXPECT_TRUE(throws_error(
      [&] {
        torus_mesh(cpus, {2, 4});
      },
      ErrorCode::kFailedPrecondition, {"no coordinates"}));
  // Devices with coordinates still use them.
  EXPECT_EQ(hybrid_mesh(tpu("v5e:4x4*2"), {2, 8}, {2, 1}, std::nullopt, allowed),
            hybrid_mesh(tpu("v5e:4x4*2"), {2, 8}, {2, 1}));
}

TEST(HybridMesh, ProcessesWithOneDeviceNeedNoCoordinates) {
  std::vector<DeviceAttributes> devices;
  for (int i = 0; i < 4; ++i) devices.push_back({.id = i, .process_index = 3 - i});
  Mesh mesh =
      hybrid_mesh(Topology(devices), {1, 1}, {2, 2}, std::nullopt, {.granule = Granule::kProcess});
  EXPECT_EQ(mesh.device_ids().to_vector(), (std::vector<std::int64_t>{3, 2, 1, 0}));
}

TEST(HybridMesh, Refused) {
  Topology pods = tpu("v5e:2x2*2"), one = tpu("v5p:2x2x1");
  auto refused = [](auto&& build, ErrorCode code, std::vector<std::string> why) {
    why.push_back("hybrid_mesh_test.cc");
    return throws_error(build, code, why);
  };
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(refused([&] { hybrid_mesh(pods, {2, 2}, {2}); }, invalid, {"2 inner sizes (2, 2)"}));
  EXPECT_TRUE(
      refused([&] { hybrid_mesh(pods, {4}, {}); }, invalid, {"2 slices", "no outer shape"}));
  EXPECT_TRUE(refused([&] { hybrid_mesh(pods, {4}, {3}); }, invalid, {"needs 3 slices", "are 2"}));
  EXPECT_TRUE(refused([&] { hybrid_mesh(one, {4}, {2}); }, invalid, {"no slice index"}));
  EXPECT_TRUE(refused([&] { hybrid_mesh(pods, {2}, {2}); }, invalid, {"needs 2 devices", "are 4"}));
  EXPECT_TRUE(refused(
      [&] {
        hybrid_mesh(one, {2, 2}, {}, MaybeNames({"a", "a"}));
      },
      invalid, {"used twice"}));
  EXPECT_TRUE(refused([&] { torus_mesh(pods, {8}); }, ErrorCode::kFailedPrecondition,
                      {"8 devices do not fill a grid of 2 x 2 x 1 places"}));
  EXPECT_TRUE(refused(
      [&] { torus_mesh(tpu("v4:4x4x4"), {128}, std::nullopt, {.contiguous_processes = true}); },
      ErrorCode::kFailedPrecondition, {"one device each"}));
}

}  // namespace
}  // namespace meshard

#include "meshard/topology/ring_mesh.h"

#include <algorithm>

#include "meshard/topology/tpu_topology.h"
#include "tests/support/matchers.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

Topology named(const char* name) { return tpu_topology(name).value(); }

void expect_every_device_once(const Mesh& mesh, const Topology& topology) {
  std::vector<std::int64_t> ids;
  for (const DeviceAttributes& device : topology.devices()) ids.push_back(device.id);
  EXPECT_TRUE(mesh.rank_map().same_devices(RankMap::listed(ids)));
}

TEST(RingMesh, OneAxisIsATourOfSingleSteps) {
  for (const char* name : {"v5e:2x2", "v5e:2x4", "v5e:4x8", "v5e:8x8", "v6e:16x16", "v5p:2x2x1",
                           "v5p:2x4x4", "v5p:4x4x4", "v5p:4x4x12", "v4:2x2x2/megacore"}) {
    Topology topology = named(name);
    RingMesh ring = ring_mesh(topology, {topology.size()});
    EXPECT_EQ(ring.hops->axes[0].mean, 1) << name;
    EXPECT_EQ(ring.hops->axes[0].worst, 1) << name;
    expect_every_device_once(ring.mesh, topology);
  }
}

TEST(RingMesh, NoShapeIsRefused) {
  TestRandom random;
  for (const char* name :
       {"v5e:8x16", "v5p:4x4x12", "v3:4x4", "tpu7x:4x4x4", "v4:4x4x4", "v5e:4x8*3", "v6e:4x4*8"}) {
    Topology topology = named(name);
    for (int round = 0; round < 6; ++round) {
      IntVector shape(static_cast<std::size_t>(random.between(1, 5)), 1);
      std::int64_t rest = topology.size();
      for (std::int64_t prime : {2, 3})
        for (; rest % prime == 0; rest /= prime)
          shape[random.between(0, std::ssize(shape) - 1)] *= prime;
      RingMesh ring = ring_mesh(topology, shape);
      EXPECT_TRUE(std::equal(shape.begin(), shape.end(), ring.mesh.shape().begin()));
      expect_every_device_once(ring.mesh, topology);
    }
  }
}

TEST(RingMesh, SlicesAreTheOuterPartOfAnAxis) {
  Topology pods = named("v5e:4x4*4");
  RingMesh ring = ring_mesh(pods, {8, 8}, MaybeNames({"dp", "tp"}));
  EXPECT_EQ(ring.hops->axes[1].between_slices, 0);
  for (const DeviceAttributes& device : pods.devices())
    EXPECT_EQ((*ring.mesh.coordinate(device.id))[0] / 2, *device.slice_index);
  RingMesh other = ring_mesh(pods, {8, 8}, std::nullopt, {2, 2});
  EXPECT_GT(other.hops->axes[1].between_slices, 0);
}

TEST(RingMesh, DevicesWithoutAGridAreALine) {
  std::vector<DeviceAttributes> devices;
  for (std::int64_t i = 0; i < 6; ++i) devices.push_back({.id = i, .process_index = i % 2});
  RingMesh line = ring_mesh(Topology(devices), {6});
  EXPECT_FALSE(line.hops);
  EXPECT_EQ(line.mesh.device_ids().to_vector(), (std::vector<std::int64_t>{0, 4, 3, 5, 1, 2}));
  std::vector<DeviceAttributes> gap = named("v5e:2x4").devices();
  gap.erase(gap.begin() + 3);
  EXPECT_EQ(ring_mesh(Topology(gap), {7}).mesh.size(), 7);
}

TEST(RingMesh, Refused) {
  Topology pods = named("v5e:2x2*2");
  auto refused = [](auto&& build, const char* why) {
    return throws_error(build, ErrorCode::kInvalidArgument, {why, "ring_mesh_test.cc"});
  };
  EXPECT_TRUE(refused([&] { ring_mesh(pods, {6}); }, "needs 6 devices, but there are 8"));
  EXPECT_TRUE(refused([&] { ring_mesh(pods, {8}, std::nullopt, {3}); }, "does not divide 8"));
  EXPECT_TRUE(refused([&] { ring_mesh(pods, {8}, std::nullopt, {4}); }, "needs 4 slices"));
  EXPECT_TRUE(refused([&] { ring_mesh(pods, {8}, std::nullopt, {2, 1}); }, "for 1 axes"));
  std::vector<DeviceAttributes> uneven = pods.devices();
  uneven.pop_back();
  EXPECT_TRUE(refused([&] { ring_mesh(Topology(uneven), {7}); },
                      "the same number of devices, not 4 and 3"));
}

}  // namespace
}  // namespace meshard

// Topologies from the device attributes that plugins report; the fake plugin can report any grid.
#include "meshard/runtime/device_topology.h"

#include "meshard/mesh/global_mesh.h"
#include "meshard/runtime/runtime.h"
#include "meshard/topology/ring_mesh.h"
#include "meshard/topology/tpu_topology.h"
#include "tests/fake_plugin/load_fake.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

class DeviceTopology : public testing::Test {
 protected:
  DeviceTopology() : fake_(MESHARD_FAKE_PLUGIN) { fake_.reset(); }
  ~DeviceTopology() override { fake_.reset(); }

  void stand_on(const char* kind, std::vector<int> sizes, std::vector<int> wrap, int cores) {
    fake_.set_grid(kind, sizes.data(), wrap.data(), cores);
  }
  pjrt::Client client(std::int64_t devices) const {
    pjrt::NamedValue count{"cpu_device_count", devices};
    pjrt::Plugin plugin = pjrt::Plugin::adopt(fake_.api()).value();
    return pjrt::Client::create(plugin, {&count, 1}).value();
  }
  FakeControl fake_;
};

TEST_F(DeviceTopology, AttributesOfALiveClient) {
  stand_on("TPU v3", {2, 2, 1}, {0, 0, 0}, 2);
  pjrt::Client live = client(16);
  Topology topology = topology_of(live).value();
  EXPECT_EQ(topology.kind(), "TPU v3");
  EXPECT_EQ(topology.size(), 16);
  EXPECT_EQ(topology.devices()[3].to_string(), "3 at (1,0,0) core 1 of slice 0, process 0");
  EXPECT_EQ(topology.devices()[14].to_string(), "14 at (1,1,0) of slice 1, process 0");
  RingMesh ring = ring_mesh(topology, {2, 8});
  EXPECT_EQ(ring.hops->axes[1].mean, 0.5);  // four links around the board, in eight steps
}

TEST_F(DeviceTopology, WrapIsWhatThePluginSays) {
  stand_on("TPU v5", {4, 2, 1}, {1, 0, 0}, 1);
  pjrt::Client live = client(8);
  EXPECT_EQ(*topology_of(live).value().wrap(), (Topology::Wrap{true, false, false}));
  EXPECT_EQ(*topology_of(pjrt::TopologyDescription::of(live).value()).value().wrap(),
            (Topology::Wrap{true, false, false}));
  // The plugin's report overrides the default of the device kind.
  stand_on("TPU v5", {4, 2, 1}, {0, 0, 0}, 1);
  pjrt::Client open = client(8);
  EXPECT_EQ(*topology_of(open).value().wrap(), Topology::Wrap(3, false));
}

// For libtpu's topology descriptions: only the device attributes are used.
TEST_F(DeviceTopology, ADescriptionIsAsGoodAsAClient) {
  stand_on("TPU v5 lite", {4, 4, 1}, {0, 0, 0}, 1);
  pjrt::Client live = client(16);
  Topology described = topology_of(pjrt::TopologyDescription::of(live).value()).value();
  EXPECT_EQ(described.devices(), topology_of(live).value().devices());
  EXPECT_EQ(ring_mesh(described, {4, 4}).hops->worst_mean(),
            ring_mesh(tpu_topology("v5e:4x4").value(), {4, 4}).hops->worst_mean());
}

TEST_F(DeviceTopology, APluginThatTellsNothing) {
  pjrt::Client live = client(4);
  Topology topology = topology_of(live).value();
  EXPECT_FALSE(topology.has_coords());
  EXPECT_FALSE(topology.wrap());
  EXPECT_EQ(ring_mesh(topology, {2, 2}).mesh.size(), 4);
}

TEST_F(DeviceTopology, OfTheRuntime) {
  RuntimeOptions options{.plugin = MESHARD_FAKE_PLUGIN, .platform = "fake", .client_options = {}};
  options.client_options.push_back({"cpu_device_count", std::int64_t{6}});
  configure_runtime(std::move(options)).value();
  EXPECT_EQ(runtime_topology().size(), 6);
  EXPECT_EQ(mesh_1d("data"), Mesh({{"data", 6}}));
}

}  // namespace
}  // namespace meshard

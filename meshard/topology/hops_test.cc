#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include "meshard/topology/ring_mesh.h"
#include "meshard/topology/tpu_topology.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(MeshHops, CountedByHand) {
  Topology board = tpu_topology("v5e:2x4").value();  // ids vary fastest along x
  Mesh mesh({{"a", 2}, {"b", 4}}, {0, 2, 4, 6, 1, 3, 5, 7});
  MeshHops hops = mesh_hops(mesh, board);
  EXPECT_EQ(hops.axes[0].mean, 1);
  EXPECT_EQ(hops.axes[0].steps, 4);   // a group of two has one step
  EXPECT_EQ(hops.axes[1].mean, 1.5);  // (1 + 1 + 1 + 3) / 4, with 3 back
  EXPECT_EQ(hops.axes[1].worst, 3);
  EXPECT_TRUE(hops.wrap_known);
  EXPECT_EQ(hops.worst_mean(), 1.5);
  EXPECT_DOUBLE_EQ(hops.mean(), 16.0 / 12);
  EXPECT_EQ(hops.to_string(mesh), "a 1 (worst 1), b 1.5 (worst 3)");
}

TEST(MeshHops, RoundTheRing) {
  Topology torus = tpu_topology("v5p:4x4x4").value();
  Mesh mesh({{"zy", 16}, {"x", 4}});
  MeshHops hops = mesh_hops(mesh, torus);
  EXPECT_EQ(hops.axes[1].mean, 1);
  EXPECT_EQ(hops.axes[0].worst, 2);  // from y = 3 to y = 0 of the next z
}

TEST(MeshHops, BetweenSlices) {
  Mesh mesh({{"slice", 2}, {"chip", 4}},
            {100000, 100001, 100003, 100002, 200000, 200001, 200003, 200002});
  MeshHops hops = mesh_hops(mesh, tpu_topology("v5e:2x2*2").value());
  EXPECT_EQ(hops.axes[0].between_slices, 4);
  EXPECT_EQ(hops.axes[0].steps, 0);
  EXPECT_EQ(hops.axes[1].mean, 1);
}

// Each step by itself, from the coordinates of the two devices.
AxisHops counted_one_by_one(const Mesh& mesh, const Topology& topology, std::size_t axis) {
  std::map<std::int64_t, const DeviceAttributes*> by_id;
  for (const DeviceAttributes& device : topology.devices()) by_id[device.id] = &device;
  AxisHops counted;
  std::int64_t sum = 0, size = mesh.shape()[axis];
  for (std::int64_t position = 0; position < mesh.size(); ++position) {
    IntVector next = *mesh.coordinate(mesh.device_id(position));
    if (size == 1 || (size == 2 && next[axis] == 1)) continue;
    next[axis] = (next[axis] + 1) % size;
    const DeviceAttributes &a = *by_id.at(mesh.device_id(position)),
                           &b = *by_id.at(mesh.device_id(next));
    if (a.slice_index != b.slice_index) {
      ++counted.between_slices;
      continue;
    }
    std::int64_t hops = 0;
    for (std::size_t k = 0; k < a.coords.size(); ++k) {
      std::int64_t apart = std::abs(a.coords[k] - b.coords[k]);
      hops += (*topology.wrap())[k] ? std::min(apart, topology.extent()[k] - apart) : apart;
    }
    ++counted.steps;
    sum += hops;
    counted.worst = std::max(counted.worst, hops);
  }
  if (counted.steps > 0)
    counted.mean = static_cast<double>(sum) / static_cast<double>(counted.steps);
  return counted;
}

TEST(MeshHops, EqualOneByOneForDevicesInAnyOrder) {
  std::mt19937 random(7);
  for (const char* tpu : {"v5p:8x8x16", "v5e:16x16*3", "v4:4x4x4*2"}) {
    Topology topology = tpu_topology(tpu).value();
    std::vector<std::int64_t> ids;
    for (const DeviceAttributes& device : topology.devices()) ids.push_back(device.id);
    std::shuffle(ids.begin(), ids.end(), random);
    std::int64_t rest = topology.size() / 4;
    for (const std::vector<MeshAxis>& axes : {std::vector<MeshAxis>{{"a", 4}, {"b", rest}},
                                              {{"a", rest}, {"b", 4}},
                                              {{"a", 2}, {"one", 1}, {"b", rest}, {"c", 2}}}) {
      Mesh mesh(axes, ids);
      MeshHops hops = mesh_hops(mesh, topology);
      for (std::size_t axis = 0; axis < axes.size(); ++axis) {
        AxisHops expected = counted_one_by_one(mesh, topology, axis);
        EXPECT_EQ(hops.axes[axis].mean, expected.mean) << tpu << ' ' << mesh << ' ' << axis;
        EXPECT_EQ(hops.axes[axis].worst, expected.worst);
        EXPECT_EQ(hops.axes[axis].steps, expected.steps);
        EXPECT_EQ(hops.axes[axis].between_slices, expected.between_slices);
      }
    }
  }
}

TEST(MeshHops, Refused) {
  EXPECT_TRUE(throws_error(
      [] {
        mesh_hops(Mesh({{"a", 1}}), Topology(std::vector<DeviceAttributes>(1)));
      },
      ErrorCode::kInvalidArgument, {"no coordinates"}));
  EXPECT_TRUE(throws_error(
      [] {
        mesh_hops(Mesh({{"a", 2}}, {0, 9}), tpu_topology("v5e:2x2").value());
      },
      ErrorCode::kInvalidArgument, {"device 9"}));
}

}  // namespace
}  // namespace meshard

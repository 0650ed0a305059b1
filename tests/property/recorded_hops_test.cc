// Our meshes never have longer rings than JAX's, on any recorded TPU and shape.
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "meshard/topology/ring_mesh.h"
#include "meshard/topology/tpu_topology.h"
#include "tests/support/recorded_meshes.h"

namespace meshard {
namespace {

double mean_over_axes(const MeshHops& hops) {
  double sum = 0;
  for (const AxisHops& axis : hops.axes) sum += axis.mean;
  return sum;
}

TEST(RecordedHops, NeverAboveJax) {
  std::map<std::string, Topology> topologies;
  constexpr double kRounding = 1e-9;
  for (const RecordedMesh& recorded : recorded_meshes(MESHARD_GOLDEN)) {
    SCOPED_TRACE(recorded.name);
    const Topology& topology =
        topologies.try_emplace(recorded.topology, tpu_topology(recorded.topology).value())
            .first->second;
    MeshHops theirs = mesh_hops(Mesh(mesh_axes(recorded.shape), recorded.ids), topology);
    RingMesh ring = ring_mesh(topology, recorded.shape, std::nullopt, recorded.outer);
    EXPECT_LE(ring.hops->worst_mean(), theirs.worst_mean() + kRounding);
    EXPECT_LE(ring.hops->mean(), theirs.mean() + kRounding);
    EXPECT_LE(mean_over_axes(*ring.hops), mean_over_axes(theirs) + kRounding);
    RankMap devices = RankMap::listed(recorded.ids);
    EXPECT_TRUE(ring.mesh.rank_map().same_devices(devices));
  }
}

}  // namespace
}  // namespace meshard

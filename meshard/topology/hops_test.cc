#include "meshard/topology/hops.h"

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

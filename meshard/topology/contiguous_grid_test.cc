#include <algorithm>
#include <set>

#include "meshard/topology/hybrid_mesh.h"
#include "meshard/topology/topology.h"
#include "meshard/topology/tpu_topology.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// The devices of each process fill a box of the mesh.
TEST(ContiguousGrid, ProcessesAreBoxesOfTheMesh) {
  for (auto [name, shape] : std::vector<std::pair<const char*, IntVector>>{
           {"v5p:2x2x4", {4, 4}}, {"v5p:4x4x4", {16, 4}}, {"v5p:4x8x8", {4, 64}}}) {
    Topology topology = tpu_topology(name).value();
    Mesh mesh = torus_mesh(topology, shape, std::nullopt, {.contiguous_processes = true});
    for (const auto& devices : granules_of(topology, Granule::kProcess)) {
      std::set<std::int64_t> rows, columns;
      for (const DeviceAttributes& device : devices) {
        rows.insert((*mesh.coordinate(device.id))[0]);
        columns.insert((*mesh.coordinate(device.id))[1]);
      }
      EXPECT_EQ(rows.size() * columns.size(), devices.size()) << name;
      EXPECT_EQ(*rows.rbegin() - *rows.begin() + 1, std::ssize(rows)) << name;
      EXPECT_EQ(*columns.rbegin() - *columns.begin() + 1, std::ssize(columns)) << name;
    }
  }
}

TEST(ContiguousGrid, NoOrderKnown) {
  PhysicalGrid grid = physical_grid(tpu_topology("v5p:4x4x4").value().devices());
  EXPECT_TRUE(throws_error(
      [&] {
        contiguous_grid(grid, {4, 16}, {});
      },
      ErrorCode::kInvalidArgument, {"4 x 4 x 4", "4 x 16"}));
  EXPECT_EQ(contiguous_grid(grid, {1, 16, 4}, {}).ids[1], grid.ids[4]);  // y before z
}

}  // namespace
}  // namespace meshard

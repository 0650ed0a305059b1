#include <gtest/gtest.h>

#include "meshard/runtime/device_topology.h"

namespace meshard {
namespace {

using Ids = std::vector<std::int64_t>;

// As in NumPy: ids.reshape(shape), transposed by permute.
TEST(LogicalMesh, HasTheIdsInTheMeshsShape) {
  Mesh mesh({{"x", 2}, {"y", 3}}, {9, 8, 7, 6, 5, 4});
  HostArray ids = get_logical_mesh(mesh);
  EXPECT_EQ(ids.type(), (TensorType{DType::i64, {2, 3}}));
  EXPECT_EQ(ids.to_vector<std::int64_t>(), (Ids{9, 8, 7, 6, 5, 4}));
  HostArray turned = get_logical_mesh(mesh.permute({"y", "x"}));
  EXPECT_EQ(turned.shape(), (Shape{3, 2}));
  EXPECT_EQ(turned.to_vector<std::int64_t>(), (Ids{9, 6, 8, 5, 7, 4}));
  EXPECT_EQ(get_logical_mesh(Mesh()).shape(), (Shape{}));
}

TEST(LogicalMesh, RowsOfASliceComeFirst) {
  HostArray ids = get_logical_mesh(Mesh({{"x", 2}, {"y", 3}})["x"]);
  EXPECT_EQ(ids.shape(), (Shape{3, 2}));
  EXPECT_EQ(ids.to_vector<std::int64_t>(), (Ids{0, 3, 1, 4, 2, 5}));
}

}  // namespace
}  // namespace meshard

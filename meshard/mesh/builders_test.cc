#include "meshard/mesh/builders.h"

#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(MeshBuilders, AxesWithoutNamesAreNumbered) {
  Mesh mesh(mesh_axes({2, 4}));
  EXPECT_EQ(mesh, Mesh({{"axis_0", 2}, {"axis_1", 4}}));
  EXPECT_TRUE(axes_are_unnamed(mesh));
  EXPECT_FALSE(axes_are_unnamed(mesh.permute({"axis_1", "axis_0"})));
  EXPECT_EQ(Mesh(mesh_axes({2, 4}, MaybeNames({"a", "b"}))), Mesh({{"a", 2}, {"b", 4}}));
  EXPECT_TRUE(throws_error(
      [] {
        mesh_axes({2, 4}, MaybeNames({"a"}));
      },
      ErrorCode::kInvalidArgument, {"1 axis names (a) for 2 sizes (2, 4)"}));
}

TEST(MeshBuilders, OneAxisOverAllDevices) {
  EXPECT_EQ(mesh_1d(8, "data"), Mesh({{"data", 8}}));
  EXPECT_TRUE(axes_are_unnamed(mesh_1d(3)));
  EXPECT_TRUE(throws_error([] { mesh_1d(0); }, ErrorCode::kInvalidArgument, {"axis_0", "0"}));
}

TEST(MeshBuilders, DevicesMustExist) {
  EXPECT_EQ(mesh_on(8, {{"a", 2}}, {7, 3}), Mesh({{"a", 2}}, {7, 3}));
  EXPECT_TRUE(throws_error(
      [] {
        mesh_on(2, {{"a", 4}}, {0, 1, 2, 3});
      },
      ErrorCode::kInvalidArgument, {"4 devices are listed, but there are only 2"}));
  EXPECT_TRUE(throws_error(
      [] {
        mesh_on(8, {{"a", 2}}, {7, 8});
      },
      ErrorCode::kInvalidArgument, {"no device 8; devices are 0 to 7"}));
  EXPECT_TRUE(throws_error(
      [] {
        mesh_on(8, {{"a", 2}}, {-1, 3});
      },
      ErrorCode::kInvalidArgument, {"no device -1"}));
}

}  // namespace
}  // namespace meshard

#include <algorithm>

#include "meshard/mesh/axes_index.h"
#include "meshard/mesh/mesh_testutil.h"

namespace meshard {
namespace {

std::string in_base(const Mesh& mesh, const AxisList& axes) {
  Result<AxisList> found = mesh.axes_in_base(axes);
  return found ? to_string(*found) : "none";
}

TEST(BaseAxes, FlattenedUnflattenedAndSliced) {
  Mesh mesh({{"x", 2}, {"y", 8}});
  EXPECT_EQ(in_base(mesh, {"y"}), "{\"y\"}");
  EXPECT_EQ(in_base(mesh["y"], {"y"}), "{\"y\"}");
  EXPECT_EQ(in_base(mesh.flatten("xy"), {"xy"}), "{\"x\", \"y\"}");
  EXPECT_EQ(in_base(mesh.permute({"y", "x"}).flatten("yx"), {"yx"}), "{\"y\", \"x\"}");
  Mesh split = mesh.unflatten("y", {{"a", 2}, {"b", 2}, {"c", 2}});
  EXPECT_EQ(in_base(split, {"b"}), "{\"y\":(2)2}");
  EXPECT_EQ(in_base(split, {"b", "c"}), "{\"y\":(2)4}");
  EXPECT_EQ(in_base(split.slice({"x", "a"}).flatten("xa"), {"xa"}), "{\"x\", \"y\":(1)2}");
  EXPECT_EQ(in_base(split.slice({"x", "a"}).flatten("xa"), {{"xa", 2, 2}}), "{\"y\":(1)2}");
  EXPECT_EQ(in_base(mesh.unsqueeze("one", 1), {"one"}), "{}");
  Mesh even = mesh.reshape({{"p", 4}, {"q", 4}});
  EXPECT_EQ(in_base(even, {"p"}), "{\"x\", \"y\":(1)2}");
  EXPECT_EQ(in_base(Mesh({{"x", 6}, {"y", 4}}).reshape({{"a", 8}, {"b", 3}}), {"a"}), "none");
  EXPECT_EQ(in_base(mesh, {"z"}), "none");
}

TEST(BaseAxes, OfASubmeshAreItsOwn) {
  Mesh stage = *Mesh({{"p", 2}, {"x", 4}, {"y", 2}}).submesh({"y", "x"}, 9);
  EXPECT_EQ(in_base(stage.flatten("yx"), {"yx"}), "{\"y\", \"x\"}");
  EXPECT_EQ(in_base(stage.unflatten("x", {{"a", 2}, {"b", 2}}), {"b"}), "{\"x\":(2)2}");
}

// The axes of the base connect the same devices.
TEST(BaseAxes, HaveTheSameGroups) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    Mesh mesh = random_mesh(random);
    AxisList axes = random_axes(random, mesh);
    std::vector<std::string> names;
    for (const MeshAxis& axis : mesh.axes()) names.push_back(axis.name);
    std::shuffle(names.begin(), names.end(), random);
    Mesh permuted = mesh.permute(names);
    Result<AxisList> found = permuted.axes_in_base(axes);
    ASSERT_TRUE(found.ok());
    AxesIndex expected(mesh, axes), got(mesh, *found);
    for (std::int64_t p = 0; p < mesh.size(); ++p) ASSERT_EQ(got(p), expected(p));
  }
}

}  // namespace
}  // namespace meshard

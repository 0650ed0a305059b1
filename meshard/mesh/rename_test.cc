#include "meshard/mesh/mesh.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(MeshRename, NamesOnly) {
  Mesh mesh({{"a", 2}, {"b", 4}});
  Mesh renamed = mesh.rename({{"a", "b"}, {"b", "a"}});
  EXPECT_EQ(renamed.axes()[0], (MeshAxis{"b", 2}));
  EXPECT_EQ(renamed.layout(), mesh.layout());
  EXPECT_NE(renamed, mesh);
  EXPECT_TRUE(throws_error(
      [&] {
        mesh.rename({{"a", "b"}});
      },
      ErrorCode::kInvalidArgument, {"rename_test.cc", "\"b\""}));
  EXPECT_TRUE(throws_error([&] { mesh.rename({{"c", "d"}}); }, ErrorCode::kNotFound, {"\"c\""}));
  EXPECT_TRUE(throws_error(
      [&] {
        mesh.rename({{"a", "1"}});
      },
      ErrorCode::kInvalidArgument, {"identifier"}));
}

TEST(MeshSqueeze, UnitAxesOnly) {
  Mesh mesh({{"p", 1}, {"a", 4}, {"q", 1}});
  EXPECT_EQ(mesh.squeeze().to_string(), "mesh<a=4>");
  EXPECT_EQ(mesh.squeeze("q").to_string(), "mesh<p=1, a=4>");
  EXPECT_EQ(mesh.squeeze().rows(), 1);
  EXPECT_TRUE(throws_error(
      [&] {
        mesh.squeeze({"p", "a"});
      },
      ErrorCode::kInvalidArgument, {"\"a\" of size 4"}));
}

TEST(MeshUnsqueeze, AnywhereWithAFreeName) {
  Mesh mesh({{"a", 4}});
  EXPECT_EQ(mesh.unsqueeze("p", 0).unsqueeze("q", 2).to_string(), "mesh<p=1, a=4, q=1>");
  EXPECT_EQ(mesh.unsqueeze("p", 1).squeeze(), mesh);
  EXPECT_TRUE(throws_error([&] { mesh.unsqueeze("p", 2); }, ErrorCode::kInvalidArgument,
                           {"before axis 2"}));
  EXPECT_TRUE(
      throws_error([&] { mesh.unsqueeze("a", 0); }, ErrorCode::kInvalidArgument, {"already used"}));
}

// Unit axes in the middle, flattened and sliced again (pytorch#169381).
TEST(MeshSqueeze, UnitAxesKeepTheirIdentity) {
  Mesh mesh({{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}});
  mesh.slice({"b", "c"}).flatten("bc");
  EXPECT_EQ(mesh.slice({"a", "bc", "d"}).rank(), 3u);
  EXPECT_EQ(mesh.slice({"d", "bc", "a"}).size(), 1);
}

}  // namespace
}  // namespace meshard

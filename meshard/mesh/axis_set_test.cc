#include "meshard/mesh/axis_set.h"

#include <gtest/gtest.h>

#include "tests/support/matchers.h"

namespace meshard {
namespace {

const Mesh& cube() {
  static const Mesh mesh({{"x", 2}, {"y", 3}, {"z", 4}});
  return mesh;
}

TEST(AxisSet, IsASet) {
  AxisSet x(cube(), {"x"}), zx(cube(), {"z", "x"}), y(cube(), {"y"});
  EXPECT_TRUE(AxisSet().empty());
  EXPECT_TRUE(zx.contains(x));
  EXPECT_FALSE(x.contains(zx));
  EXPECT_TRUE(zx.contains(std::size_t{2}));
  EXPECT_FALSE(zx.contains(std::size_t{1}));
  EXPECT_EQ(zx - x, AxisSet(cube(), {"z"}));
  EXPECT_TRUE((zx & y).empty());
  EXPECT_EQ(zx | y, AxisSet::all(cube()));
}

TEST(AxisSet, ListsItsAxesInMeshOrder) {
  EXPECT_EQ(AxisSet(cube(), {"z", "x"}).to_string(cube()), R"({"x", "z"})");
  EXPECT_EQ(AxisSet().to_string(cube()), "{}");
}

TEST(AxisSet, TakesWholeAxesOfTheMeshOnce) {
  EXPECT_TRUE(throws_error([] { AxisSet(cube(), {"w"}); }, ErrorCode::kInvalidArgument,
                           {"no axis \"w\"", "mesh<x=2, y=3, z=4>"}));
  EXPECT_TRUE(throws_error(
      [] {
        AxisSet(cube(), {"x", "x"});
      },
      ErrorCode::kInvalidArgument, {"\"x\" is named twice"}));
  EXPECT_TRUE(throws_error([] { AxisSet(cube(), {AxisRef("z", 1, 2)}); },
                           ErrorCode::kInvalidArgument, {"\"z\":(1)2 is a part"}));
}

}  // namespace
}  // namespace meshard

#include <gtest/gtest.h>

#include "meshard/mesh/axis_ref.h"
#include "meshard/mesh/concatenate.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

constexpr AxisKind kExplicit = AxisKind::kExplicit;

// x and y are explicit, z is auto.
Mesh mixed() { return Mesh({{"x", 2, kExplicit}, {"y", 4, kExplicit}, {"z", 3}}); }

TEST(AxisKind, IsPartOfTheValue) {
  Mesh plain({{"x", 2}, {"y", 4}, {"z", 3}});
  EXPECT_FALSE(plain.has_explicit_axes());
  EXPECT_TRUE(mixed().has_explicit_axes());
  EXPECT_NE(mixed(), plain);
  EXPECT_NE(mixed().hash(), plain.hash());
  EXPECT_EQ(plain.with_axis_kind({"x", "y"}, kExplicit), mixed());
  EXPECT_EQ(mixed().with_axis_kind({"y", "x"}, AxisKind::kAuto), plain);
}

TEST(AxisKind, PrintsAndParses) {
  EXPECT_EQ(mixed().to_string(), "mesh<x=2 explicit, y=4 explicit, z=3>");
  Mesh listed({{"x", 2, kExplicit}}, {5, 3});
  EXPECT_EQ(listed.to_string(), "mesh<x=2 explicit; devices=[5,3]>");
  Mesh slice = mixed().slice({"z", "x"});
  EXPECT_EQ(slice.to_string(),
            "mesh<z=3:1, x=2:12 explicit of mesh<x=2 explicit, y=4 explicit, z=3>>");
  for (const Mesh& mesh : {mixed(), listed, slice}) EXPECT_EQ(*Mesh::parse(mesh.to_string()), mesh);
}

TEST(AxisKind, DerivedAxesKeepIt) {
  Mesh mesh = mixed();
  auto kind = [](const Mesh& derived, std::string_view axis) {
    return derived.axes()[derived.axis_index(axis)].kind;
  };
  Mesh flat = mesh.flatten({"x", "y"}, "xy");
  EXPECT_EQ(kind(flat, "xy"), kExplicit);
  EXPECT_EQ(kind(flat, "z"), AxisKind::kAuto);
  EXPECT_EQ(kind(mesh["xy"], "xy"), kExplicit) << "by the name that the root remembers";
  EXPECT_EQ(kind(mesh.unflatten("y", {{"y0", 2}, {"y1", 2}}), "y1"), kExplicit);
  EXPECT_EQ(kind(mesh.rename({{"x", "rows"}}), "rows"), kExplicit);
  EXPECT_EQ(kind(mesh.permute({"z", "y", "x"}), "x"), kExplicit);
  EXPECT_EQ(kind(mesh.unsqueeze("one", 0), "one"), AxisKind::kAuto);
  EXPECT_EQ(kind(*mesh.submesh({"x", "z"}, 5), "x"), kExplicit);
  EXPECT_EQ(kind(concatenate({mesh["z"], mesh["x"]}), "x"), kExplicit);
  EXPECT_EQ(kind(mesh.submesh("y", 5)->as_root(), "y"), kExplicit);
}

TEST(AxisKind, UnlikeKindsAreNoAxis) {
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error([] { mixed().flatten("all"); }, invalid,
                           {"axis_kind_test.cc", "\"x\"", "\"z\"", "one is explicit"}));
  EXPECT_TRUE(throws_error([] { mixed().flatten({"z", "y"}, "zy"); }, invalid, {"\"z\"", "\"y\""}));
  EXPECT_TRUE(throws_error([] { mixed().reshape({{"a", 24}}); }, invalid, {"explicit"}));
  EXPECT_TRUE(throws_error(
      [] {
        mixed().unflatten("z", {{"a", 3, kExplicit}});
      },
      invalid, {"\"a\" cannot be explicit", "\"z\""}));
  Mesh unit({{"x", 2, kExplicit}, {"one", 1}});
  EXPECT_EQ(unit.flatten("both").axes()[0].kind, kExplicit) << "a unit axis does not count";
}

}  // namespace
}  // namespace meshard

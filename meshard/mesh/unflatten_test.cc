#include "meshard/mesh/mesh.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(MeshUnflatten, ReplacesAnAxis) {
  Mesh mesh({{"dp", 2}, {"x", 12}});
  Mesh split = mesh.unflatten("x", {{"cp", 3}, {"tp", 4}});
  EXPECT_EQ(split.rank(), 3u);
  EXPECT_EQ(split.layout(), Layout(IntTuple{2, 3, 4}, IntTuple{12, 4, 1}));
  EXPECT_EQ(*split.coordinate(17), (IntVector{1, 1, 1}));
  EXPECT_EQ(mesh.unflatten("x", {{"a", 1}, {"x", 12}}).shape()[1], 1);
  EXPECT_EQ(split.slice({"cp", "tp"}).flatten("y").axis_layout(0), mesh.axis_layout(1));
}

TEST(MeshUnflatten, NonAdjacentFlattened) {
  Mesh mesh({{"a", 3}, {"b", 5}, {"c", 4}});
  Mesh flat = mesh.slice({"a", "c"}).flatten("ac");  // (3,4):(20,1)
  EXPECT_EQ(flat.unflatten("ac", {{"p", 6}, {"q", 2}}).axis_layout(0),
            Layout(IntTuple{3, 2}, IntTuple{20, 2}));
  EXPECT_EQ(flat.unflatten("ac", {{"p", 3}, {"q", 2}, {"r", 2}}).layout(),
            Layout(IntTuple{3, 2, 2}, IntTuple{20, 2, 1}));
  for (const std::vector<MeshAxis>& parts :
       {std::vector<MeshAxis>{{"p", 2}, {"q", 6}}, {{"p", 4}, {"q", 3}}})
    EXPECT_TRUE(throws_error([&] { flat.unflatten("ac", parts); }, ErrorCode::kInvalidArgument,
                             {"unflatten_test.cc", "\"ac\" = (3,4):(20,1)", "cannot be cut"}));
}

TEST(MeshUnflatten, Errors) {
  Mesh mesh({{"dp", 2}, {"x", 12}});
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(
      [&] {
        mesh.unflatten("x", {{"a", 5}, {"b", 2}});
      },
      invalid, {"10 positions", "12"}));
  EXPECT_TRUE(throws_error(
      [&] {
        mesh.unflatten("x", {{"dp", 3}, {"b", 4}});
      },
      invalid, {"\"dp\""}));
  EXPECT_TRUE(throws_error([&] { mesh.unflatten("x", {{"a", 3}, {"a", 4}}); }, invalid, {"twice"}));
  EXPECT_TRUE(throws_error(
      [&] {
        mesh.unflatten("x", {{"a", 0}, {"b", 4}});
      },
      invalid, {"size 0"}));
  EXPECT_TRUE(throws_error([&] { mesh.unflatten("x", {}); }, invalid, {"no parts", "squeeze"}));
  EXPECT_TRUE(throws_error(
      [&] {
        mesh.unflatten("y", {{"a", 12}});
      },
      ErrorCode::kNotFound, {"unflatten_test.cc", "\"y\""}));
}

TEST(MeshReshape, OtherAxesOverTheSamePositions) {
  Mesh mesh({{"x", 6}, {"y", 4}});
  Mesh other = mesh.reshape({{"a", 8}, {"b", 3}});
  for (std::int64_t device = 0; device < 24; ++device)
    EXPECT_EQ(*other.coordinate(device), (IntVector{device / 3, device % 3}));
  EXPECT_EQ(Mesh({{"one", 1}}).reshape({}), Mesh());
  Mesh transposed = mesh.permute({"y", "x"});  // devices 0, 4, 8, ...
  EXPECT_EQ(*transposed.reshape({{"a", 2}, {"b", 12}}).coordinate(7), (IntVector{1, 7}));
  EXPECT_TRUE(throws_error(
      [&] {
        mesh.reshape({{"a", 5}});
      },
      ErrorCode::kInvalidArgument, {"5 positions", "24"}));
}

}  // namespace
}  // namespace meshard

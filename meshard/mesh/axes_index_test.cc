#include "meshard/mesh/axes_index.h"

#include "meshard/mesh/mesh_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// The index along `axes` by definition: the digits of the coordinate, most significant axis first.
std::int64_t index_by_definition(const Mesh& mesh, const AxisList& axes, std::int64_t position) {
  std::int64_t index = 0;
  for (const AxisRef& axis : axes) {
    std::size_t i = mesh.axis_index(axis.name);
    std::int64_t whole = mesh.shape()[i], size = mesh.axis_size(axis);
    std::int64_t pre = axis.is_whole() ? 1 : axis.pre_size, post = whole / (pre * size);
    index = index * size + mesh.coordinate_at(position)[i] / post % size;
  }
  return index;
}

TEST(AxesIndex, IsTheIndexByDefinition) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    Mesh mesh = random_mesh(random);
    AxisList axes = random_axes(random, mesh);
    SCOPED_TRACE(mesh.to_string() + " " + to_string(axes));
    AxesIndex index(mesh, axes);
    std::vector<std::int64_t> filled(static_cast<std::size_t>(mesh.size()));
    index.fill(filled);
    std::int64_t size = 1;
    for (const AxisRef& axis : axes) size *= mesh.axis_size(axis);
    ASSERT_EQ(index.size(), size);
    for (std::int64_t p = 0; p < mesh.size(); ++p) {
      ASSERT_EQ(index(p), index_by_definition(mesh, axes, p)) << p;
      ASSERT_EQ(filled[static_cast<std::size_t>(p)], index(p)) << p;
    }
    Layout layout = index.layout();
    for (std::int64_t i = 0; i < index.size(); ++i) {
      ASSERT_EQ(index(index.offset(i)), i);
      ASSERT_EQ(layout(i), index.offset(i));
    }
  }
}

TEST(AxesIndex, AxesAndTheRemainingOnesNameEveryPositionOnce) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    Mesh mesh = random_mesh(random);
    AxisList axes = random_axes(random, mesh);
    AxesIndex index(mesh, axes), rest(mesh, remaining_axes(mesh, axes));
    ASSERT_EQ(index.size() * rest.size(), mesh.size()) << mesh.to_string() << to_string(axes);
    for (std::int64_t p = 0; p < mesh.size(); ++p)
      ASSERT_EQ(index.offset(index(p)) + rest.offset(rest(p)), p);
  }
}

TEST(AxesIndex, AxesOfInvertsLayout) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    Mesh mesh = random_mesh(random);
    AxisList axes = random_axes(random, mesh);
    AxesIndex index(mesh, axes);
    Result<AxisList> found = axes_of(mesh, index.layout());
    ASSERT_TRUE(found.ok()) << found.error().what();
    EXPECT_EQ(AxesIndex(mesh, *found), index) << mesh.to_string() << to_string(axes);
  }
}

TEST(AxesIndex, AxesOfExamples) {
  Mesh mesh({{"x", 4}, {"y", 6}});
  auto axes = [&](const char* layout) {
    return to_string(axes_of(mesh, Layout::parse(layout).value()).value());
  };
  EXPECT_EQ(axes("4:6"), "{\"x\"}");
  EXPECT_EQ(axes("24:1"), "{\"x\", \"y\"}");
  EXPECT_EQ(axes("(6,4):(1,6)"), "{\"y\", \"x\"}");
  EXPECT_EQ(axes("2:6"), "{\"x\":(2)2}");
  EXPECT_EQ(axes("12:2"), "{\"x\", \"y\":(1)3}");
  EXPECT_EQ(axes("(2,2):(12,6)"), "{\"x\"}");
  for (const char* layout : {"4:5", "5:1", "2:4", "48:1", "2:0", "(2,2):(6,6)", "8:1"})
    EXPECT_FALSE(axes_of(mesh, Layout::parse(layout).value()).ok()) << layout;
}

TEST(AxesIndex, RemainingAxes) {
  Mesh mesh({{"x", 8}, {"y", 2}});
  EXPECT_EQ(to_string(remaining_axes(mesh, {})), "{\"x\", \"y\"}");
  EXPECT_EQ(to_string(remaining_axes(mesh, {{"x", 2, 2}})), "{\"x\":(1)2, \"x\":(4)2, \"y\"}");
  EXPECT_EQ(to_string(remaining_axes(mesh, {"x"})), "{\"y\"}");
}

TEST(AxesIndex, Errors) {
  Mesh mesh({{"x", 8}, {"y", 12}});
  auto index = [&](AxisList axes) { return [&mesh, axes] { AxesIndex(mesh, axes); }; };
  EXPECT_TRUE(throws_error(index({"z"}), ErrorCode::kNotFound, {"\"z\"", "x, y"}));
  EXPECT_TRUE(throws_error(index({"x", "x"}), ErrorCode::kInvalidArgument, {"twice"}));
  EXPECT_TRUE(throws_error(index({{"x", 1, 4}, {"x", 2, 4}}), ErrorCode::kInvalidArgument,
                           {"\"x\":(2)4", "twice"}));
  EXPECT_TRUE(throws_error(index({{"y", 1, 2}, {"y", 3, 2}}), ErrorCode::kInvalidArgument,
                           {"cannot be used together"}));
  EXPECT_TRUE(throws_error(index({{"x", 3, 2}}), ErrorCode::kInvalidArgument, {"divide"}));
}

}  // namespace
}  // namespace meshard

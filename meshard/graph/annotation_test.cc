#include "meshard/graph/annotation.h"

#include <gtest/gtest.h>

#include "meshard/graph/graph_text.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Annotation, IsOnTheNodesThatHaveOneOnly) {
  Tensor x = from_host(std::vector<float>{1, 2}, {2});
  EXPECT_EQ(test::plus(x, x).value()->annotations(), nullptr);
  EXPECT_EQ(manual_axes(x.value()), nullptr);
  EXPECT_EQ(explicit_sharding(x.value()), nullptr);
  Tensor inside = test::local(x, {"x", "y"}, {"y"});
  const ManualAxes* manual = manual_axes(inside.value());
  ASSERT_NE(manual, nullptr);
  EXPECT_EQ(manual->to_string(), R"(manual over {"x", "y"} of mesh<x=2, y=2>)");
  EXPECT_EQ(manual->varying.to_string(manual->mesh), R"({"y"})");
}

TEST(Annotation, OfALocalValueIsWhatTheTensorSays) {
  Tensor x = from_host(std::vector<float>{1, 2}, {2});
  Tensor inside = test::local(x, {"x"}, {"x"});
  EXPECT_EQ(inside.placement(), R"(manual over {"x"} of mesh<x=2, y=2>)");
  EXPECT_EQ(inside.to_string(), R"(f32[2] (manual over {"x"} of mesh<x=2, y=2>))");
  EXPECT_EQ(inside.sharding(), std::nullopt);
  EXPECT_TRUE(throws_error([&] { inside.to_host(); }, ErrorCode::kFailedPrecondition,
                           {"local value", R"(manual over {"x"})", "annotation_test.cc:"}));
}

TEST(Annotation, IsPrintedAndRead) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, {2}}, std::nullopt, {});
  Tensor varying = test::local(x, {"x", "y"}, {"y"}), equal = test::local(x, {"x", "y"}, {});
  Tensor inside = test::plus(varying, equal);
  Graph graph = Graph::build(std::vector{x.value()}, std::vector{inside.value()}, scope.trace());
  std::string text = to_string(graph);
  EXPECT_EQ(text, R"(graph(%0: f32[2]) {
  %1 = local(%0) {axes={"x", "y"}, varying={"y"}} : f32[2] manual{"x", "y"} varying{"y"}
  %2 = local(%0) {axes={"x", "y"}, varying={}} : f32[2] manual{"x", "y"} varying{}
  %3 = plus(%1, %2) : f32[2] manual{"x", "y"} varying{"y"}
  return %3
}
)");
  EXPECT_EQ(to_string(parse_graph(text, test::find_test_op).value()), text);
  std::string wrong = text;
  wrong.replace(wrong.find("varying{}"), 9, "varying{\"x\"}");
  EXPECT_FALSE(parse_graph(wrong, test::find_test_op).ok());
}

TEST(Annotation, ACarriedValueIsSplitByWhatItVariesOver) {
  Mesh mesh({{"x", 2}, {"y", 2}});
  ManualAxes place{mesh, AxisSet::all(mesh), AxisSet(mesh, {"y"})};
  EXPECT_EQ(carried_sharding(place, {DType::f32, {2, 3}}).spec(), P("y", none));
  EXPECT_EQ(carried_sharding(place, {DType::f32, {}}).spec(), P("y"));
  place.varying = {};
  EXPECT_EQ(carried_sharding(place, {DType::f32, {2, 3}}).spec(), P(none, none));
}

TEST(ManualAxes, OfRegionsInsideOthers) {
  Mesh mesh({{"x", 2}, {"y", 2}, {"z", 2}});
  auto set = [&](AxisList axes) { return AxisSet(mesh, axes); };
  ManualAxes outer{mesh, set({"y"}), set({"y"})};
  ManualAxes inner{mesh, set({"x", "y", "z"}), set({"x", "y"}), {set({"y"}), set({"x", "y"})}};
  EXPECT_EQ(inner.depth(), 3u);
  EXPECT_EQ(inner.own(), set({"z"}));
  EXPECT_EQ(inner.at_depth(1), outer);
  EXPECT_EQ(inner.at_depth(2).own(), set({"x"}));
  EXPECT_TRUE(inner.is_inside(outer));
  EXPECT_FALSE(outer.is_inside(inner));
  EXPECT_FALSE(inner.same_place({mesh, inner.axes, inner.varying}));
  EXPECT_EQ(inner.to_string(),
            R"(manual over {"z"} inside {"x"} inside {"y"} of mesh<x=2, y=2, z=2>)");
  EXPECT_EQ(inner.printed(), R"(manual{"y"}{"x"}{"z"} varying{"x", "y"})");
  // Carried out of the innermost region, a value needs no dimension for axes that vary outside it.
  EXPECT_EQ(carried_sharding(inner, {DType::f32, {}}).rank(), 0u);
  EXPECT_EQ(carried_sharding(inner.at_depth(2), {DType::f32, {}}), Sharding(mesh, P("x")));
}

}  // namespace
}  // namespace meshard

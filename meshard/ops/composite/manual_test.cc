#include "meshard/ops/composite/manual.h"

#include <gtest/gtest.h>

#include <map>

#include "meshard/graph/leaf.h"
#include "meshard/ops/all_reduce.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/composite/operators.h"
#include "meshard/ops/manual_testutil.h"
#include "meshard/ops/reduction.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

const Mesh& four() {
  static const Mesh mesh({{"x", 2}, {"y", 2}});
  return mesh;
}

struct Layer {
  Tensor w, b;
  MESHARD_FIELDS(w, b)
};

TEST(Manual, SpecsAreForArgumentsOrForTensors) {
  Layer layer{input({8, 2}), input({8})};
  auto shapes = [](const Layer& local, const Tensor& x) {
    return cat(local.w.shape(), local.b.shape(), x.shape());
  };
  std::string seen;
  auto run = [&](SpecList specs) {
    manual(four(), std::move(specs), P("x"), [&](const Layer& local, const Tensor& x) {
      seen = shapes(local, x);
      return std::vector<Tensor>{};
    })(layer, input({4, 4}));
    return seen;
  };
  EXPECT_EQ(run({P("x"), P(none, "y")}), "[4, 2][4][4, 2]");
  EXPECT_EQ(run({P("x", "y"), P("y"), P()}), "[4, 1][4][4, 4]");
  EXPECT_TRUE(
      throws_error([&] { run(P()); }, ErrorCode::kInvalidArgument,
                   {"[manual] 1 in_specs for 2 arguments with 3 tensors", "manual_test.cc:"}));
}

TEST(Manual, ResultsAreStructures) {
  auto f = manual(four(), P("x"), {P("x"), P()}, [](const Tensor& x) {
    return std::map<std::string, Tensor>{{"part", x * 2}, {"sum", all_reduce(sum(x), "x")}};
  });
  auto result = f(input({4}));
  EXPECT_EQ(result["part"].shape(), (Shape{4}));
  EXPECT_EQ(result["sum"].shape(), Shape());
  EXPECT_EQ(result["part"].sharding(), Sharding(four(), P("x")));
  EXPECT_EQ(varying(result["part"]), "full");
  EXPECT_TRUE(throws_error(
      [] {
        manual(four(), P("x"), {P("x"), P()}, [](const Tensor& x) { return x; })(input({4}));
      },
      ErrorCode::kInvalidArgument, {"2 out_specs for 1 tensors"}));
}

TEST(Manual, WhatIsTheSameEverywhereMayLeaveUnsplit) {
  Tensor y =
      manual(four(), SpecList{}, {P(), P("x")}, [] { return std::pair(ones({3}), ones({3})); })()
          .second;
  EXPECT_EQ(y.shape(), (Shape{6}));
  EXPECT_TRUE(throws_error(
      [] { manual(four(), P("x"), P(), [](const Tensor& x) { return x; })(input({4})); },
      ErrorCode::kInvalidArgument, {"varies over {\"x\"}", "P(none) does not name"}));
}

TEST(Manual, FullValuesComeAsArguments) {
  Tensor full = input({2});
  EXPECT_TRUE(throws_error(
      [&] {
        manual(four(), P("x"), P("x"), [&](const Tensor& x) { return x + full; })(input({4}));
      },
      ErrorCode::kInvalidArgument, {"[add]", "pass the full value to manual()"}));
  EXPECT_TRUE(throws_error(
      [&] { manual(four(), P("x"), P("x"), [&](const Tensor&) { return full; })(input({4})); },
      ErrorCode::kInvalidArgument, {"tensor 0 of the result", "is a full value"}));
}

TEST(Manual, DoesNotNest) {
  auto inner = manual(four(), P("y"), P("y"), [](const Tensor& x) { return x; });
  EXPECT_TRUE(
      throws_error([&] { manual(four(), P("x"), P("x"), inner, {.axes = {"x"}})(input({4})); },
                   ErrorCode::kInvalidArgument, {"do not nest", "manual over {\"x\"}"}));
}

TEST(Manual, SomeAxesOrASlice) {
  AxisList seen;
  auto look = [&](const Tensor& x) {
    const ManualAxes& place = *manual_axes(x.value());
    EXPECT_EQ(place.mesh, four());
    seen = place.axes.of(place.mesh);
    return x;
  };
  manual(four(), P("y"), P("y"), look, {.axes = {"y"}})(input({4}));
  EXPECT_EQ(to_string(seen), R"({"y"})");
  manual(four()["x"], P("x"), P("x"), look)(input({4}));
  EXPECT_EQ(to_string(seen), R"({"x"})");
  EXPECT_TRUE(throws_error([&] { manual(four(), P("x"), P("x"), look, {.axes = {"z"}}); },
                           ErrorCode::kInvalidArgument, {"no axis \"z\"", "manual_test.cc:"}));
}

TEST(Manual, OutShapesCutThePadding) {
  auto f = [](std::vector<Shape> shapes) {
    return manual(four(), P("x"), P("x"), [](const Tensor& x) { return x; },
                  {.out_shapes = shapes})(input({3}));
  };
  EXPECT_EQ(f({}).shape(), (Shape{4}));
  EXPECT_EQ(f({{3}}).shape(), (Shape{3}));
  EXPECT_TRUE(throws_error([&] { f({{5}}); }, ErrorCode::kInvalidArgument, {"a shard of f32[5]"}));
  EXPECT_TRUE(throws_error([&] { f({{3}, {3}}); }, ErrorCode::kInvalidArgument, {"2 out_shapes"}));
}

}  // namespace
}  // namespace meshard

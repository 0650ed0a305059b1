#include "meshard/ops/composite/manual.h"

#include <gtest/gtest.h>

#include <map>

#include "meshard/graph/leaf.h"
#include "meshard/ops/collectives.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/composite/operators.h"
#include "meshard/ops/manual_testutil.h"
#include "meshard/ops/manual_values.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/reshape.h"
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

// ---- Functions inside functions.

template <class F>
auto over(const char* axis, F f, SpecList in = P("y"), SpecList out = P("y")) {
  return manual(four(), std::move(in), std::move(out), f, {.axes = {axis}});
}
template <class F>
Tensor inside_x(F f) {
  return manual(four(), P("x"), P("x"), f, {.axes = {"x"}})(input({8}));
}

TEST(Manual, NestsOverFurtherAxes) {
  std::string seen;
  auto look = [&](const Tensor& x) {
    append(seen, cat(x.shape(), *manual_axes(x.value()), varying(x), " "));
    return x;
  };
  Tensor y = inside_x([&](const Tensor& rows) { return look(over("y", look)(look(rows))); });
  EXPECT_EQ(seen, R"([4]manual over {"x"} of mesh<x=2, y=2>{"x"} )"
                  R"([2]manual over {"y"} inside {"x"} of mesh<x=2, y=2>{"x", "y"} )"
                  R"([4]manual over {"x"} of mesh<x=2, y=2>{"x"} )");
  EXPECT_EQ(varying(y), "full");
  EXPECT_EQ(y.shape(), (Shape{8}));
}

TEST(Manual, WhatVariesInsideIsKeptForBoth) {
  auto after = [](auto f, const PartitionSpec& out) {
    std::string seen;
    inside_x([&](const Tensor& rows) {
      Tensor inner = over(
          "y",
          [&](const Tensor& part) {
            Tensor result = f(part);
            append(seen, varying(result));
            return result;
          },
          P("y"), out)(rows);
      append(seen, varying(inner));
      return rows;
    });
    return seen;
  };
  EXPECT_EQ(after([](const Tensor& t) { return all_reduce(t, "x"); }, P("y")), R"({"y"}{})");
  EXPECT_EQ(after([](const Tensor& t) { return all_reduce(t, "y"); }, P()), R"({"x"}{"x"})");
  EXPECT_EQ(after([](const Tensor& t) { return all_reduce(t, {"y", "x"}); }, P()), "{}{}");
  EXPECT_TRUE(throws_error([&] { after([](const Tensor& t) { return t; }, P()); },
                           ErrorCode::kInvalidArgument,
                           {"varies over {\"y\"}", "does not name", "manual_test.cc:"}));
}

TEST(Manual, ASliceNamesTheInnerAxes) {
  inside_x([](const Tensor& rows) {
    return manual(four()["y"], P("y"), P("y"), [](const Tensor& part) {
      EXPECT_EQ(part.shape(), (Shape{2}));
      return part;
    })(rows);
  });
}

TEST(Manual, NumbersOfTheFunctionAroundMayBeUsedInside) {
  Tensor number = input({});
  inside_x([&](const Tensor& rows) {
    Tensor own = sum(rows);
    EXPECT_EQ(varying(own), R"({"x"})");
    return over("y", [&](const Tensor& part) {
      Tensor both = part * own + number;
      EXPECT_EQ(varying(both), R"({"x", "y"})");
      EXPECT_EQ(varying(all_reduce(vary(own, "y"), "y")), R"({"x"})");
      return both;
    })(rows);
  });
  EXPECT_TRUE(throws_error(
      [&] {
        inside_x([&](const Tensor& rows) {
          return over("y", [&](const Tensor& part) { return part + reshape(rows, {2, 2}); })(rows);
        });
      },
      ErrorCode::kInvalidArgument,
      {"[add]", "combined with a value of the enclosing one", "inner manual() as an argument",
       "manual over {\"y\"} inside {\"x\"}", "manual_test.cc:"}));
}

TEST(Manual, InnerSpecsDoNotNameOuterAxes) {
  auto fails = [](SpecList in, SpecList out, std::string which) {
    return throws_error(
        [&] {
          inside_x([&](const Tensor& rows) {
            return over(
                "y", [](const Tensor& t) { return t; }, in, out)(rows);
          });
        },
        ErrorCode::kInvalidArgument,
        {"[manual] " + which, "names axis \"x\" of mesh<x=2, y=2>, which is manual around",
         "manual_test.cc:"});
  };
  EXPECT_TRUE(fails(P("x"), P("y"), "in_spec P(\"x\")"));
  EXPECT_TRUE(fails(P("y"), P(axes("x", "y")), "out_spec"));
}

TEST(Manual, InnerAxesAreFurtherOnesOfTheSameMesh) {
  auto fails = [](const Mesh& mesh, std::vector<std::string> axes, std::vector<std::string> texts) {
    auto inner = manual(mesh, P("y"), P("y"), [](const Tensor& t) { return t; }, {.axes = axes});
    texts.push_back("manual_test.cc:");
    return throws_error([&] { inside_x(inner); }, ErrorCode::kInvalidArgument, texts);
  };
  EXPECT_TRUE(fails(four(), {"x", "y"}, {"{\"x\"} is already manual", "out of {\"y\"}"}));
  EXPECT_TRUE(fails(four(), {}, {"over {\"x\", \"y\"}", "{\"x\"} is already manual"}));
  EXPECT_TRUE(fails(Mesh({{"x", 2}, {"y", 4}}), {"y"},
                    {"over mesh<x=2, y=4>", "manual over {\"x\"} of mesh<x=2, y=2>",
                     "other axes of the same mesh"}));
  auto all = manual(four(), P("x"), P("x"), manual(four(), P(), P(), [](Tensor t) { return t; }));
  EXPECT_TRUE(throws_error([&] { all(input({4})); }, ErrorCode::kInvalidArgument,
                           {"the mesh has no other axis"}));
}

TEST(Manual, FullValuesGoThroughTheOuterFunction) {
  Tensor full = input({4});
  EXPECT_TRUE(throws_error(
      [&] {
        inside_x([&](const Tensor&) { return over("y", [](const Tensor& t) { return t; })(full); });
      },
      ErrorCode::kInvalidArgument,
      {"is a full value", "pass it to the outer function as an argument first",
       "manual_test.cc:"}));
  EXPECT_TRUE(throws_error(
      [&] {
        inside_x([&](const Tensor& rows) {
          return over("y", [&](const Tensor&) { return rows; })(rows);
        });
      },
      ErrorCode::kInvalidArgument, {"a value of the enclosing function", "manual over {\"x\"}"}));
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
                  {.out_shapes = shapes, .pad = 0})(input({3}));
  };
  EXPECT_EQ(f({}).shape(), (Shape{4}));
  EXPECT_EQ(f({{3}}).shape(), (Shape{3}));
  EXPECT_TRUE(throws_error([&] { f({{5}}); }, ErrorCode::kInvalidArgument, {"a shard of f32[5]"}));
  EXPECT_TRUE(throws_error([&] { f({{3}, {3}}); }, ErrorCode::kInvalidArgument, {"2 out_shapes"}));
}

}  // namespace
}  // namespace meshard

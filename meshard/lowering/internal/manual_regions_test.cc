#include "meshard/lowering/internal/manual_regions.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/ops/all.h"

namespace meshard {
namespace {

const Mesh& quad() {
  static const Mesh mesh({{"x", 2}, {"y", 2}});
  return mesh;
}

void append_steps(std::string& out, const ProgramOrder& order,
                  const std::vector<ProgramStep>& steps) {
  for (const ProgramStep& step : steps) {
    if (step.node) {
      append(out, cat(step.node->op().name, " "));
      continue;
    }
    const ManualRegion& region = order.regions[step.region];
    append(out, cat("[", region.inputs.size(), ": "));
    append_steps(out, order, region.steps);
    append(out, cat(":", region.outputs.size(), "] "));
  }
}

// The program order of `f` for a 4x4 matrix: the ops, with regions in brackets.
template <class F>
std::string order_of(F f) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, {4, 4}}, std::nullopt, {});
  Tensor y = f(x);
  Graph graph = Graph::build(std::vector{x.value()}, std::vector{y.value()}, scope.trace());
  ProgramOrder order(graph);
  std::string out;
  append_steps(out, order, order.steps);
  return out;
}

Tensor into(const Tensor& x) { return enable_manual_sharding(x, quad(), P("x")); }
Tensor out_of(const Tensor& x) { return disable_manual_sharding(x, quad(), P("x"), {4, 4}); }

TEST(ProgramOrder, WithoutManualAxesIsThatOfRecording) {
  EXPECT_EQ(order_of([](const Tensor& x) { return tanh(x + 1); }),
            "constant broadcast_in_dim add tanh ");
}

TEST(ProgramOrder, NodesOfOneLevelAreOneRegion) {
  // Two independent functions, whose nodes are recorded alternately with full nodes.
  EXPECT_EQ(order_of([](const Tensor& x) {
              Tensor a = into(x), full = exp(x), b = into(x);
              Tensor first = out_of(tanh(a)), second = out_of(sin(b));
              return first + second + full;
            }),
            "sharding_constraint exp sharding_constraint [2: tanh sin :2] sharding_constraint "
            "sharding_constraint add add ");
}

TEST(ProgramOrder, WhatNeedsAFullResultIsALaterRegion) {
  EXPECT_EQ(order_of([](const Tensor& x) {
              Tensor first = out_of(tanh(into(x)));
              return out_of(sin(into(exp(first))));
            }),
            "sharding_constraint [1: tanh :1] sharding_constraint exp sharding_constraint "
            "[1: sin :1] sharding_constraint ");
}

TEST(ProgramOrder, LocalValuesAreCarriedOnce) {
  EXPECT_EQ(order_of([](const Tensor& x) {
              Tensor local = into(x);
              Tensor first = out_of(tanh(local));
              Tensor again = into(exp(first));
              return out_of(again * local + local);
            }),
            "sharding_constraint [1: tanh :2] sharding_constraint exp sharding_constraint "
            "[2: multiply add :1] sharding_constraint ");
}

TEST(ProgramOrder, FreeValuesEnterOnce) {
  EXPECT_EQ(order_of([](const Tensor& x) {
              Tensor row = iota(DType::f32, {2, 4}, 1);
              return manual(quad(), P("x"), P("x"),
                            [&](const Tensor& part) { return part * row + row; })(x);
            }),
            "iota [2: multiply add :1] sharding_constraint ");
}

TEST(ProgramOrder, OtherAxesAreAnotherRegion) {
  EXPECT_EQ(order_of([](const Tensor& x) {
              auto over = [&](const char* axis) {
                return manual(quad(), P(axis), P(axis),
                              [](const Tensor& part) { return tanh(part); }, {.axes = {axis}})(x);
              };
              Tensor a = over("x"), b = over("y");
              return a + b;
            }),
            "[1: tanh :1] [1: tanh :1] sharding_constraint sharding_constraint add ");
}

// ---- Regions inside regions.

template <class F>
auto over(const char* axis, F f) {
  return manual(quad(), P(axis), P(axis), f, {.axes = {axis}});
}

TEST(ProgramOrder, ARegionInsideAnotherStandsBetweenItsNodes) {
  EXPECT_EQ(order_of([](const Tensor& x) {
              return over("x", [](const Tensor& rows) {
                Tensor inside = over("y", [](const Tensor& part) { return tanh(part); })(exp(rows));
                return sin(inside);
              })(x);
            }),
            "[1: exp [1: tanh :1] sharding_constraint sin :1] sharding_constraint ");
}

TEST(ProgramOrder, InnerRegionsOfOneLevelAreOne) {
  EXPECT_EQ(order_of([](const Tensor& x) {
              return over("x", [](const Tensor& rows) {
                Tensor a = over("y", [](const Tensor& part) { return tanh(part); })(rows);
                Tensor b = over("y", [](const Tensor& part) { return sin(part); })(rows);
                Tensor c = over("y", [](const Tensor& part) { return cos(part); })(a);
                return b + c;
              })(x);
            }),
            "[1: [2: tanh sin :2] sharding_constraint sharding_constraint [1: cos :1] "
            "sharding_constraint add :1] sharding_constraint ");
}

TEST(ProgramOrder, WhatMayBeUsedInsideEntersEachRegion) {
  EXPECT_EQ(order_of([](const Tensor& x) {
              Tensor row = iota(DType::f32, {2}, 0);
              return over("x", [&](const Tensor& rows) {
                Tensor number = sum(rows);
                return over("y", [&](const Tensor& part) {
                  return reshape(sum(part * number), {1}) * row;
                })(rows);
              })(x);
            }),
            "iota [2: sum broadcast_in_dim [3: multiply sum reshape broadcast_in_dim multiply :1] "
            "sharding_constraint :1] sharding_constraint ");
}

// A backward pass needs values of the inner region after the outer one has ended.
TEST(ProgramOrder, LocalValuesAreCarriedThroughBothBorders) {
  EXPECT_EQ(order_of([](const Tensor& x) {
              Tensor kept;
              Tensor first = over("x", [&](const Tensor& rows) {
                return over("y", [&](const Tensor& part) { return kept = tanh(part); })(rows);
              })(x);
              return over("x", [&](const Tensor& rows) {
                return over("y", [&](const Tensor& part) { return part * kept; })(rows);
              })(exp(first));
            }),
            "[1: [1: tanh :2] sharding_constraint :2] sharding_constraint exp "
            "[2: [2: multiply :1] sharding_constraint :1] sharding_constraint ");
}

}  // namespace
}  // namespace meshard

#include "meshard/graph/graph.h"

#include <gtest/gtest.h>

#include "meshard/graph/graph_text.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using test::plus;
using test::scale;

const TensorType kType{DType::f32, Shape{2}};

std::vector<Value> values(std::initializer_list<Tensor> tensors) {
  std::vector<Value> out;
  for (const Tensor& tensor : tensors) out.push_back(tensor.value());
  return out;
}

TEST(Graph, OrdersNodesBehindTheirOperandsAndCapturesOutsiders) {
  Tensor outside = from_host(std::vector<float>{1, 2}, {2});
  Tensor lazy = plus(outside, outside);
  internal::TraceScope scope;
  Tensor a = make_parameter(kType, std::nullopt, {}), b = make_parameter(kType, std::nullopt, {});
  Tensor sum = plus(a, outside), all = plus(plus(sum, lazy), sum), unused = plus(b, b);
  Graph graph = Graph::build(values({a, b}), values({all, a}), scope.trace());
  ASSERT_EQ(graph.parameters().size(), 2u);
  ASSERT_EQ(graph.captured().size(), 2u);
  EXPECT_EQ(graph.captured()[0], outside.value());
  EXPECT_EQ(graph.captured()[1], lazy.value()) << "recorded outside the trace: not entered";
  EXPECT_EQ(graph.nodes().size(), 3u) << "what no result needs is left out";
  for (const Node* node : graph.nodes())
    for (const Value& operand : node->operands())
      EXPECT_LT(graph.number(operand.node()), graph.number(node));
  EXPECT_EQ(graph.number(b.value().node()), 1u);
  EXPECT_EQ(graph.source(graph.number(sum.value().node())).line, sum.where().line);
  EXPECT_FALSE(graph.source(1000).known());
}

TEST(Graph, ComputedNodesAreCaptured) {
  Tensor x = from_host(std::vector<float>{1, 2}, {2});
  Tensor y = plus(x, x), z = scale(y, 2);
  y.value()->set_storage(0, make_storage<HostStorage>(HostArray::zeros(kType)));
  Graph graph = Graph::build({}, values({z}), 0);
  ASSERT_EQ(graph.captured().size(), 1u);
  EXPECT_EQ(graph.captured()[0], y.value());
  EXPECT_EQ(graph.nodes().size(), 1u);
}

TEST(Graph, RefusesALeakedTracedValue) {
  Tensor leaked;
  {
    internal::TraceScope scope;
    leaked = make_parameter(kType, std::nullopt, SourceLocation::current());
  }
  internal::TraceScope scope;
  Tensor y = plus(leaked, leaked);
  EXPECT_TRUE(throws_error([&] { Graph::build({}, values({y}), scope.trace()); },
                           ErrorCode::kInvalidArgument, {"outside its trace", "graph_test.cc"}));
}

TEST(Graph, WithOtherResults) {
  internal::TraceScope scope;
  Tensor a = make_parameter({DType::f32, {2}}, std::nullopt, {});
  Tensor b = scale(a, 2), c = plus(b, b), elsewhere = scale(a, 2);
  Graph graph =
      Graph::build(std::vector<Value>{a.value()}, std::vector<Value>{c.value()}, scope.trace());
  Graph both = graph.with_results(std::vector<Value>{c.value(), b.value()});
  Graph built = Graph::build(std::vector<Value>{a.value()},
                             std::vector<Value>{c.value(), b.value()}, scope.trace());
  EXPECT_EQ(to_string(both), to_string(built));
  EXPECT_EQ(both.fingerprint(), built.fingerprint());
  EXPECT_NE(both.fingerprint(), graph.fingerprint());
  EXPECT_TRUE(graph.contains(b.value().node()));
  EXPECT_TRUE(graph.contains(a.value().node()));
  EXPECT_FALSE(graph.contains(elsewhere.value().node()));
  EXPECT_FALSE(Graph().contains(b.value().node()));
}

}  // namespace
}  // namespace meshard

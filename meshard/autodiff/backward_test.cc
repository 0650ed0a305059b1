#include "meshard/autodiff/backward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/graph/graph.h"
#include "meshard/graph/graph_text.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::ElementsAre;

const OpDef opaque_op = {
    .name = "opaque",
    .operands = "x",
    .infer = [](const OpCall& call, ResultTypes& out) { out.push_back(call.operand(0)); },
    .vjp = kNotDifferentiable,
};
Tensor opaque(In x) { return record(opaque_op, nullptr, {x.tensor}, x.where); }

// An op with two results, x and 2 x, that counts the calls of its vjp.
int asked = 0;
const OpDef pair_op = {
    .name = "pair",
    .operands = "x",
    .infer =
        [](const OpCall& call, ResultTypes& out) {
          out.push_back(call.operand(0));
          out.push_back(call.operand(0));
        },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          ++asked;
          EXPECT_EQ(call.cotangents.size(), 2u);
          EXPECT_EQ(call.results.size(), 2u);
          EXPECT_FALSE(call.cotangents[0].defined()) << "nothing depends on the first";
          out[0] = call.cotangents[1] * 2;
        },
};

Tensor column_of(std::vector<double> values) {
  auto size = static_cast<std::int64_t>(values.size());
  return from_host(std::move(values), {size});
}

std::vector<Tensor> run(const Tensor& output, const std::vector<Tensor>& inputs) {
  Tensor seed = ones(output.shape(), output.dtype());
  return backward(std::span(&output, 1), std::span(&seed, 1), inputs, {});
}

TEST(Backward, AddsUpAllPaths) {
  internal::KeepOperandsScope keep;
  Tensor x = column_of({2, 3});
  Tensor y = x * x, z = y * x + y;  // x^3 + x^2
  EXPECT_THAT(interpret(run(z, {x})[0]).to_vector<double>(), ElementsAre(16, 33));
}

TEST(Backward, AsksEachNodeOnceAfterAllItsUsers) {
  asked = 0;
  Tensor x = column_of({1});
  Tensor both = record(pair_op, nullptr, {&x}, {});
  Tensor second{Value(both.value().node(), 1)};
  Tensor y = second + second * second;
  EXPECT_EQ(run(y, {x})[0].shape(), (Shape{1}));
  EXPECT_EQ(asked, 1);
}

TEST(Backward, AMissingDerivativeNamesTheOpAndItsLine) {
  Tensor x = column_of({1});
  std::uint32_t line = __LINE__ + 1;
  Tensor y = opaque(x) * 2;
  EXPECT_TRUE(throws_error([&] { (void)run(y, {x}); }, ErrorCode::kUnimplemented,
                           {cat("backward_test.cc:", line, ":"), "opaque has no derivative"}));
  EXPECT_NO_THROW((void)run(opaque(column_of({1})) * x, {x})) << "not on a path to an input";
}

TEST(Backward, ZerosWhereNoPathLeads) {
  Tensor x = column_of({1, 2}), other = column_of({5});
  std::vector<Tensor> gradients = run(other * 2, {x, other});
  EXPECT_THAT(interpret(gradients[0]).to_vector<double>(), ElementsAre(0, 0));
  EXPECT_THAT(interpret(gradients[1]).to_vector<double>(), ElementsAre(2));
}

TEST(Backward, ALongChainNeedsNoStack) {
  Tensor x = column_of({1});
  Tensor y = x;
  for (int i = 0; i < 200000; ++i) y = -y;
  Tensor g = run(y, {x})[0];
  EXPECT_EQ(g.shape(), (Shape{1}));
}

TEST(Backward, RecordsNothingForConstants) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, {}}, std::nullopt, {});
  Tensor c = make_parameter({DType::f32, {}}, std::nullopt, {});
  Tensor y = x * exp(c);
  Tensor g = run(y, {x})[0];
  Graph graph =
      Graph::build(std::vector{x.value(), c.value()}, std::vector{g.value()}, scope.trace());
  for (const Node* node : graph.nodes()) EXPECT_NE(node->op().name, "log") << to_string(graph);
  // ones * exp(c): at most a constant, exp and multiply.
  EXPECT_LE(graph.nodes().size(), 3u) << to_string(graph);
}

TEST(Backward, CotangentsMustFit) {
  Tensor x = column_of({1, 2});
  Tensor y = x * 2, wrong = column_of({1});
  EXPECT_TRUE(throws_error(
      [&] { (void)backward(std::span(&y, 1), std::span(&wrong, 1), std::span(&x, 1), {}); },
      ErrorCode::kInvalidArgument, {"cotangent 0 is f64[1], but its output is f64[2]"}));
}

}  // namespace
}  // namespace meshard

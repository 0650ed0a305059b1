#include "meshard/autodiff/differentiate_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "meshard/autodiff/grad.h"
#include "meshard/graph/superseded.h"
#include "meshard/ops/all.h"
#include "meshard/ops/batching/vmap.h"
#include "meshard/ops/definition/attributes.h"
#include "tests/support/verify.h"

namespace meshard {
namespace {

using Keep = ResidualPolicy::Keep;

// tanh(x w) (x + 1), with a carry x and a captured w.
Body body() {
  std::vector<BodyInput> inputs{{{DType::f32, {4, 4}}}, {{DType::f32, {4, 4}}}};
  return trace_body(inputs,
                    [](std::span<const Tensor> p) {
                      Tensor h = checkpoint_name(tanh(matmul(p[0], p[1])), "h");
                      return std::vector<Tensor>{h * (p[0] + 1)};
                    },
                    std::nullopt, {})
      .body;
}

BodyVjp differentiated(const ResidualPolicy& policy, InBackward carry = InBackward::kUnavailable) {
  const InBackward back[] = {carry, InBackward::kInvariant};
  return body_differentiator().differentiate(body(), {true}, {true, true}, back, policy, {});
}

// The ops whose results are kept.
std::multiset<std::string> kept(const BodyVjp& vjp) {
  std::multiset<std::string> names;
  for (std::size_t i = 1; i < vjp.forward.num_results(); ++i)
    names.emplace(vjp.forward.graph().results()[i]->op().name);
  return names;
}

TEST(DifferentiateBody, KeepsWhatThePolicySays) {
  using Names = std::multiset<std::string>;
  // The carry is kept like any other value. tanh is needed twice; its name costs nothing.
  EXPECT_EQ(kept(differentiated({Keep::kNothing})), (Names{"parameter"}));
  EXPECT_EQ(kept(differentiated({Keep::kDots})), (Names{"parameter", "dot_general"}));
  EXPECT_EQ(kept(differentiated({Keep::kNamed, {"h"}})), (Names{"parameter", "checkpoint_name"}));
  EXPECT_EQ(kept(differentiated({Keep::kNamed, {"other"}})), (Names{"parameter"}));
  EXPECT_EQ(kept(differentiated({Keep::kNeeded})).count("tanh"), 1u);
  EXPECT_EQ(kept(differentiated({Keep::kNothing}, InBackward::kAvailable)), Names{});
}

// silu(x g) (x u) d, as in a layer with a gated MLP, with a carry x.
Tensor gated(const Tensor& x, const Tensor& g, const Tensor& u, const Tensor& d) {
  return matmul(silu(matmul(x, g)) * matmul(x, u), d);
}

// The types of what the loops keep that compute `result` from `parameters`, in addition to carries.
std::multiset<std::string> kept_by_loops(const Tensor& result,
                                         const std::vector<Tensor>& parameters) {
  std::vector<Value> leaves;
  for (const Tensor& parameter : parameters) leaves.push_back(parameter.value());
  Graph graph = Graph::build(leaves, std::vector<Value>{result.value()}, result.value()->trace());
  std::multiset<std::string> types;
  for (const Node* node : graph.nodes()) {
    if (node->op().name != "scan") continue;
    const auto& scan = node->attributes_as<ScanAttributes>();
    if (scan.extends.empty()) continue;
    for (auto i = static_cast<std::uint32_t>(scan.num_carries); i < node->num_outputs(); ++i)
      types.insert(cat(node->type(i)));
  }
  return types;
}

// The sigmoid, its product with the gate, and the product of both branches are computed again.
TEST(DifferentiateBody, ALoopKeepsTheTwoProductsOfAGatedMlp) {
  using Types = std::multiset<std::string>;
  internal::TraceScope scope;
  auto parameter = [](Shape shape) {
    return make_parameter({DType::f32, std::move(shape)}, std::nullopt, {});
  };
  Tensor x = parameter({4, 8}), g = parameter({3, 8, 16}), u = parameter({3, 8, 16}),
         d = parameter({3, 16, 8}), batch = parameter({2, 4, 8});
  auto loss = [&](const Tensor& given) {
    using Weights = std::tuple<Tensor, Tensor, Tensor>;
    auto step = [](const Tensor& c, const Weights& w) {
      return std::pair(gated(c, std::get<0>(w), std::get<1>(w), std::get<2>(w)), c);
    };
    return sum(scan(step, given, Weights(g, u, d)).first);
  };
  // The loop's own result, and the products. The derivative needs the carry only by its products.
  EXPECT_EQ(kept_by_loops(grad(loss)(x), {x, g, u, d}),
            (Types{"f32[3,4,8]", "f32[3,4,16]", "f32[3,4,16]"}));
  EXPECT_EQ(kept_by_loops(vmap(grad(loss))(batch), {batch, g, u, d}),
            (Types{"f32[3,2,4,8]", "f32[3,2,4,16]", "f32[3,2,4,16]"}));
}

TEST(DifferentiateBody, BothHalvesAreSound) {
  for (Keep keep : {Keep::kNeeded, Keep::kNothing, Keep::kDots, Keep::kEverything}) {
    BodyVjp vjp = differentiated({keep});
    EXPECT_TRUE(verify(vjp.forward.graph()).ok());
    EXPECT_TRUE(verify(vjp.backward.graph()).ok());
    EXPECT_EQ(vjp.backward.num_parameters(), 1 + vjp.residuals.size() + vjp.captured.size());
    EXPECT_EQ(vjp.backward.num_results(), 2u);
    EXPECT_EQ(vjp.forward.result(0), body().result(0));
  }
}

// The number of scans that run in a program that computes `results` from x.
std::size_t loops_that_run(const Tensor& x, std::uint64_t trace,
                           const std::vector<Tensor>& results) {
  std::vector<Value> values;
  for (const Tensor& result : results) values.push_back(result.value());
  Graph graph = Graph::build(std::vector<Value>{x.value()}, values, trace);
  EXPECT_TRUE(verify(graph).ok());
  std::size_t scans = 0;
  for (const Node* node : graph.nodes()) scans += node->op().name == "scan";
  return scans - superseded_nodes(graph).size();
}

// x to the fourth power, by a loop that also scans slices.
Tensor fourth_power(const Tensor& x) {
  Tensor rows = stack({x, x, x});
  return sum(scan([](Tensor c, Tensor row) { return std::pair(c * row, c); }, x, rows).first);
}

TEST(DifferentiateBody, TheWayForwardOfABatchRunsOnce) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, {5, 4}}, std::nullopt, {});
  auto [value, gradient] = vmap(value_and_grad(fourth_power))(x);
  EXPECT_EQ(loops_that_run(x, scope.trace(), {value, gradient}), 2u);
  auto [values, gradients] = vmap(vmap(value_and_grad([](const Tensor& t) {
    return sum(fori_loop(
        0, 3, [](Tensor, Tensor c) { return sin(c); }, t));
  })))(x);
  EXPECT_EQ(loops_that_run(x, scope.trace(), {values, gradients}), 2u);
}

TEST(DifferentiateBody, TheWayForwardOfHigherDerivativesRunsOnce) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, {4}}, std::nullopt, {});
  auto penalized = [](const Tensor& t) {
    auto [value, gradient] = value_and_grad(fourth_power)(t);
    return value + sum(square(gradient));
  };
  // The forward loop, the backward loop, and the backward loop of each.
  auto second = grad([](const Tensor& t) { return sum(grad(fourth_power)(t)); })(x);
  EXPECT_EQ(loops_that_run(x, scope.trace(), {second}), 4u);
  EXPECT_EQ(loops_that_run(x, scope.trace(), {grad(penalized)(x)}), 4u);
  auto [value, gradient] = value_and_grad(penalized)(x);
  EXPECT_EQ(loops_that_run(x, scope.trace(), {value, gradient}), 4u);
}

// The recorded loop and the extended one, which keeps more, run as one.
TEST(DifferentiateBody, TheWayForwardRunsOnce) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, {4}}, std::nullopt, {});
  auto loss = [](const Tensor& t) {
    return sum(fori_loop(
        0, 3, [](Tensor, Tensor c) { return sin(c); }, t));
  };
  auto [value, gradient] = value_and_grad(loss)(x);
  Graph graph = Graph::build(std::vector<Value>{x.value()},
                             std::vector<Value>{value.value(), gradient.value()}, scope.trace());
  EXPECT_TRUE(verify(graph).ok());
  int scans = 0;
  for (const Node* node : graph.nodes()) scans += node->op().name == "scan";
  EXPECT_EQ(scans, 3);
  EXPECT_EQ(superseded_nodes(graph).size(), 1u);
}

}  // namespace
}  // namespace meshard

#include "meshard/explain/collectives/program_phases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "meshard/autodiff/grad.h"
#include "meshard/graph/body.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/arithmetic.h"
#include "meshard/ops/checkpoint.h"
#include "meshard/ops/composite/control_flow.h"
#include "meshard/ops/composite/matmul.h"
#include "meshard/ops/composite/operators.h"
#include "meshard/ops/exponential.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/trigonometric.h"

namespace meshard {
namespace {

using Tensors = std::vector<Tensor>;

// `op phase` for each node, with the nodes of bodies after their node, indented by `.`.
void list(const Graph& graph, const ProgramPhases& phases, const std::string& before,
          std::vector<std::string>& out) {
  for (const Node* node : graph.nodes()) {
    std::string path = before + std::to_string(graph.number(node));
    std::string dots(static_cast<std::size_t>(std::count(path.begin(), path.end(), '.')) / 2, '.');
    out.push_back(dots + std::string(node->op().name) + " " +
                  std::string(to_string(phases.of_op("jit_main/n" + path))));
    std::span<const Body> bodies = bodies_of(*node);
    for (std::size_t b = 0; b < bodies.size(); ++b)
      list(bodies[b].graph(), phases, path + "." + std::to_string(b) + ".", out);
  }
}

// The phases of the ops of `step`, a function of four matrices.
template <class Function>
std::vector<std::string> phases_of(const Function& step) {
  internal::TraceScope scope;
  Tensors parameters;
  std::vector<Value> leaves, results;
  for (int i = 0; i < 4; ++i) {
    parameters.push_back(make_parameter({DType::f32, {4, 4}}, std::nullopt, {"step.cc", "f", 1}));
    leaves.push_back(parameters.back().value());
  }
  for (const Tensor& result : step(parameters)) results.push_back(result.value());
  Graph graph = Graph::build(leaves, results, scope.trace());
  std::vector<std::string> out;
  list(graph, ProgramPhases(graph), "", out);
  return out;
}

int count(const std::vector<std::string>& all, std::string_view what) {
  return static_cast<int>(std::count(all.begin(), all.end(), what));
}
int count_ending(const std::vector<std::string>& all, std::string_view what) {
  return static_cast<int>(std::count_if(all.begin(), all.end(), [&](const std::string& each) {
    return std::string_view(each).ends_with(what);
  }));
}

TEST(ProgramPhases, OfATrainingStep) {
  std::vector<std::string> found = phases_of([](const Tensors& p) {
    auto loss = [&](const Tensor& w) { return sum(tanh(matmul(p[1], w))); };
    auto [value, gradient] = value_and_grad(loss)(p[0]);
    return Tensors{p[0] - gradient * 0.5f, value, exp(p[2])};
  });
  EXPECT_EQ(count(found, "tanh forward"), 1);
  EXPECT_EQ(count(found, "sum forward"), 1) << "nothing of the derivative needs the loss";
  EXPECT_EQ(count(found, "dot_general forward"), 1);
  EXPECT_EQ(count(found, "dot_general backward"), 1);
  EXPECT_EQ(count(found, "subtract optimizer"), 1);
  EXPECT_EQ(count(found, "exp "), 1) << "of no phase";
}

TEST(ProgramPhases, AreUnknownWithoutDerivatives) {
  std::vector<std::string> found =
      phases_of([](const Tensors& p) { return Tensors{tanh(matmul(p[0], p[1]))}; });
  EXPECT_EQ(count(found, "tanh "), 1);
  EXPECT_EQ(count(found, "dot_general "), 1);
  EXPECT_EQ(found.size(), 2);
}

// The loop of the forward pass is recorded again with what the backward pass needs.
TEST(ProgramPhases, OfTheBodiesOfLoops) {
  std::vector<std::string> found = phases_of([](const Tensors& p) {
    auto loss = [&](const Tensor& w) {
      return sum(fori_loop(
          0, 3, [&](const Tensor&, const Tensor& x) { return sin(matmul(x, w)); }, p[1]));
    };
    return Tensors{p[0] - grad(loss)(p[0])};
  });
  EXPECT_EQ(count(found, "scan forward"), 1);
  EXPECT_EQ(count(found, "scan backward"), 1);
  EXPECT_EQ(count(found, ".sin forward"), 1);
  EXPECT_EQ(count(found, ".dot_general forward"), 1);
  EXPECT_EQ(count(found, ".dot_general backward"), 2) << "the gradients of x and w";
  EXPECT_EQ(count(found, "subtract optimizer"), 1);
}

// What is computed again for the backward pass belongs to it.
TEST(ProgramPhases, OfCheckpoints) {
  std::vector<std::string> found = phases_of([](const Tensors& p) {
    auto block = checkpoint([](const Tensor& w, const Tensor& x) { return sin(matmul(x, w)); });
    auto loss = [&](const Tensor& w) { return sum(block(w, p[1])); };
    auto [value, gradient] = value_and_grad(loss)(p[0]);
    return Tensors{p[0] - gradient, value};
  });
  EXPECT_EQ(count_ending(found, "sin forward"), 1);
  EXPECT_EQ(count_ending(found, "dot_general forward"), 1);
  EXPECT_EQ(count_ending(found, "dot_general backward"), 2) << "once again, and the gradient";
}

// Accumulated gradients: the loop is in no phase, its ops are.
TEST(ProgramPhases, OfALoopThatTakesDerivatives) {
  std::vector<std::string> found = phases_of([](const Tensors& p) {
    auto loss = [&](const Tensor& w) { return sum(tanh(matmul(p[1], w))); };
    Tensor total = fori_loop(
        0, 3, [&](const Tensor&, const Tensor& sum) { return sum + grad(loss)(p[0]); }, p[2]);
    return Tensors{p[0] - total};
  });
  EXPECT_EQ(count(found, "scan "), 1);
  EXPECT_EQ(count(found, ".tanh forward"), 1);
  EXPECT_EQ(count(found, ".dot_general forward"), 1);
  EXPECT_EQ(count(found, ".dot_general backward"), 1);
  EXPECT_EQ(count(found, ".add optimizer"), 1);
  EXPECT_EQ(count(found, "subtract optimizer"), 1);
}

TEST(ProgramPhases, OfModulesOfJaxAreInTheNames) {
  ProgramPhases phases;
  EXPECT_EQ(phases.of_op("jit(step)/transpose(jvp(net))/dot_general"), ProgramPhase::kBackward);
  EXPECT_EQ(phases.of_op("jit(step)/jvp(net)/dot_general"), ProgramPhase::kForward);
  EXPECT_EQ(phases.of_op("jit(step)/sub"), ProgramPhase::kUnknown);
}

}  // namespace
}  // namespace meshard

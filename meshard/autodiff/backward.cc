#include "meshard/autodiff/backward.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "meshard/autodiff/differentiate_body.h"
#include "meshard/autodiff/manual_cotangent.h"
#include "meshard/graph/annotation.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/ops/add.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/sharding_constraint.h"

namespace meshard {
namespace {

// Over explicit axes a cotangent lies as its primal does, all the way.
Tensor as_primal(const Value& primal, const Tensor& cotangent) {
  const Sharding* wanted = explicit_sharding(primal);
  const Sharding* present = explicit_sharding(cotangent.value());
  if (!wanted || (present && *present == *wanted)) return cotangent;
  return sharding_constraint(cotangent, *wanted);
}

// The nodes between outputs and inputs, and the cotangents gathered so far.
class Backward {
 public:
  explicit Backward(std::span<const Tensor> inputs) {
    for (const Tensor& input : inputs) {
      state(input.value().node()).reaches_input = true;
      oldest_input_ = std::min(oldest_input_, input.value()->id());
    }
  }

  void run(std::span<const Tensor> outputs, std::span<const Tensor> cotangents) {
    std::vector<Node*> order = find_paths(outputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) add(outputs[i].value(), cotangents[i]);
    // Ids grow along every path, so falling ids visit each node after all of its users.
    std::sort(order.begin(), order.end(), [](Node* a, Node* b) { return a->id() > b->id(); });
    for (Node* node : order) step(node);
  }

  /// Undefined where no path led.
  Tensor cotangent(const Value& value) {
    auto& cotangents = states_[value.node()].cotangents;
    return value.index() < cotangents.size() ? cotangents[value.index()] : Tensor();
  }

 private:
  struct State {
    bool visited = false;
    bool reaches_input = false;
    InlineVector<Tensor, 1> cotangents;
  };
  State& state(Node* node) { return states_[node]; }

  // Only floating-point and complex values carry cotangents: a path through an integer or bool ends
  // there.
  static bool carries(const Value& value) { return is_inexact(value.type().dtype); }

  // Depth-first without recursion; a node reaches an input if one of its operands does.
  std::vector<Node*> find_paths(std::span<const Tensor> outputs) {
    std::vector<Node*> order;
    std::vector<std::pair<Node*, std::size_t>> stack;
    auto enter = [&](Node* node) {
      // What is older than every input depends on none. It may also be a value that another thread
      // computes just now, which takes its operands away.
      if (node->id() < oldest_input_) return;
      State& entered = state(node);
      if (entered.visited || entered.reaches_input) return;  // inputs are not entered
      entered.visited = true;
      stack.emplace_back(node, 0);
    };
    // One output after the other: a node that is entered and not done says nothing yet, and outputs
    // may depend on one another.
    std::size_t next_output = 0;
    while (!stack.empty() || next_output < outputs.size()) {
      if (stack.empty()) {
        enter(outputs[next_output++].value().node());
        continue;
      }
      auto& [node, next] = stack.back();
      if (next < node->operands().size()) {
        const Value& operand = node->operands()[next++];
        if (carries(operand)) enter(operand.node());
        continue;
      }
      Node* done = node;
      stack.pop_back();
      bool reaches =
          std::any_of(done->operands().begin(), done->operands().end(), [&](const Value& operand) {
            return carries(operand) && state(operand.node()).reaches_input;
          });
      if (reaches) order.push_back(done);
      state(done).reaches_input = reaches;
    }
    return order;
  }

  void add(const Value& value, const Tensor& given) {
    if (!given.defined()) return;
    Tensor cotangent = as_primal(value, given);
    auto& cotangents = state(value.node()).cotangents;
    if (cotangents.size() <= value.index()) cotangents.resize(value.index() + 1);
    Tensor& sum = cotangents[value.index()];
    sum = sum.defined() ? meshard::add(sum, cotangent) : cotangent;
  }

  void step(Node* node) {
    State& own = state(node);
    if (own.cotangents.empty()) return;
    const OpDef& op = node->op();
    if (!op.vjp)
      throw Error(ErrorCode::kUnimplemented,
                  cat("[grad] ", op.name,
                      " has no derivative, and the result depends on an input through it"),
                  node->where());
    InheritSource line(node->where());
    std::vector<Tensor> operands, results, gradients(node->operands().size());
    InlineVector<bool, 4> needed;
    for (const Value& operand : node->operands()) {
      operands.emplace_back(operand);
      needed.push_back(carries(operand) && state(operand.node()).reaches_input);
    }
    for (std::uint32_t i = 0; i < node->num_outputs(); ++i) results.emplace_back(Value(node, i));
    own.cotangents.resize(node->num_outputs());
    InlineVector<Tensor, 1> cotangents = std::move(own.cotangents);
    if (node->annotations())
      for (std::uint32_t i = 0; i < node->num_outputs(); ++i)
        cotangents[i] = cotangent_like(results[i].value(), cotangents[i]);
    op.vjp({.node = *node,
            .operands = operands,
            .results = results,
            .cotangents = std::span<const Tensor>(cotangents.data(), cotangents.size()),
            .needed = std::span<const bool>(needed.data(), needed.size()),
            .bodies = &body_differentiator()},
           gradients);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!needed[i] || !gradients[i].defined()) continue;
      internal_check(gradients[i].type() == operands[i].type(),
                     cat("[", op.name, "] the cotangent of operand ", i, " is ",
                         gradients[i].type(), ", the operand ", operands[i].type()));
      add(node->operands()[i],
          node->annotations() ? cotangent_of_operand(*node, i, gradients[i]) : gradients[i]);
    }
  }

  std::unordered_map<Node*, State> states_;
  std::uint64_t oldest_input_ = std::numeric_limits<std::uint64_t>::max();
};

Tensor with_sharding_of(const Tensor& primal, Tensor cotangent) {
  std::optional<Sharding> sharding = primal.sharding();
  const Sharding* present = explicit_sharding(cotangent.value());
  if (!sharding || (present && *present == *sharding)) return cotangent;
  return sharding_constraint(cotangent, *sharding);
}

}  // namespace

std::vector<Tensor> backward(std::span<const Tensor> outputs, std::span<const Tensor> cotangents,
                             std::span<const Tensor> inputs, SourceLocation where) {
  internal_check(outputs.size() == cotangents.size(), "[grad] one cotangent per output");
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (cotangents[i].type(where) != outputs[i].type(where))
      throw_invalid(where, "[vjp] cotangent ", i, " is ", cotangents[i].type(), ", its output is ",
                    outputs[i].type());
  Backward pass(inputs);
  pass.run(outputs, cotangents);
  std::vector<Tensor> gradients;
  for (const Tensor& input : inputs) {
    InheritSource line(where);
    Tensor cotangent = pass.cotangent(input.value());
    if (!cotangent.defined()) cotangent = zeros(input.shape(), input.dtype());
    gradients.push_back(with_sharding_of(input, cotangent_like(input.value(), cotangent)));
  }
  return gradients;
}

}  // namespace meshard

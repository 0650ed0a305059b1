#include "meshard/autodiff/backward.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "meshard/autodiff/custom_vjp.h"
#include "meshard/autodiff/differentiate_body.h"
#include "meshard/autodiff/manual_cotangent.h"
#include "meshard/graph/annotation.h"
#include "meshard/graph/body.h"
#include "meshard/graph/explicit_sharding.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/node_table.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/graph/superseded.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"

namespace meshard {
namespace {

// The same value, replicated along explicit axes.
Tensor gathered(const Tensor& tensor) {
  const Sharding* present = tensor.defined() ? explicit_sharding(tensor.value()) : nullptr;
  if (!present) return tensor;
  Sharding whole = whole_over_explicit_axes(present->mesh(), present->rank());
  return *present == whole ? tensor : sharding_constraint(tensor, whole);
}

// Reshards a cotangent over explicit axes like its primal, throughout the backward pass.
Tensor as_primal(const Value& primal, const Tensor& cotangent) {
  const Sharding* said = explicit_sharding(primal);
  if (!said) return gathered(cotangent);
  const Sharding* present = explicit_sharding(cotangent.value());
  const Sharding wanted = said->with_unreduced({});  // it is used, not only summed
  return present && *present == wanted ? cotangent : sharding_constraint(cotangent, wanted);
}

// What a node is computed from: its operands, or the outer value if the node represents one in the
// body that is being recorded.
std::span<const Value> sources_of(const Node& node) {
  if (const BodyScope* body = internal::recorder().body)
    if (const Value* outer = body->outside(node)) return {outer, 1};
  return node.operands();
}

// Without this check, a path that cannot be followed would be ignored and its derivative would be
// 0.
void check_can_follow(const Node& node) {
  bool is_computed = node.storage() != nullptr;
  if (!is_computed && !is_being_recorded(node.trace()))
    throw Error(ErrorCode::kInvalidArgument,
                "[grad] a traced value is differentiated outside its trace. Call the pullback, or "
                "take the gradient, inside the function where it was recorded",
                effective_source(node.where()))
        .with_note(cat("it was recorded at ", node.where()));
  if (is_computed && node.operands().empty() && !node.op().operands.empty())
    throw Error(ErrorCode::kFailedPrecondition,
                cat("[grad] the result of ", node.op().name,
                    " made here was computed before it was differentiated, and its inputs have "
                    "been released. Record it inside the function given to grad or vjp"),
                node.where());
}

// The nodes between outputs and inputs, and the cotangents accumulated so far.
class Backward {
 public:
  explicit Backward(std::span<const Tensor> inputs) {
    for (const Tensor& input : inputs) {
      inputs_.insert(input.value().node());
      state(input.value().node()).reaches_input = true;
      oldest_input_ = std::min(oldest_input_, input.value()->id());
    }
  }

  void run(std::span<const Tensor> outputs, std::span<const Tensor> cotangents) {
    std::vector<Node*> order = find_paths(outputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) add(outputs[i].value(), cotangents[i]);
    // Ids increase along every path, so descending ids visit each node after all of its users.
    std::sort(order.begin(), order.end(), [](Node* a, Node* b) { return a->id() > b->id(); });
    find_repeated(order);
    for (Node* node : order) {
      auto found = repeated_.find(node);
      if (found == repeated_.end())
        step(node, *node);
      else if (pass_on(node, found->second))
        step(found->second, *node);
    }
  }

  /// Undefined if no path leads to the value.
  Tensor cotangent(const Value& value) {
    auto& cotangents = state(value.node()).cotangents;
    return value.index() < cotangents.size() ? cotangents[value.index()] : Tensor();
  }

 private:
  struct State {
    bool visited = false;
    bool reaches_input = false;
    InlineVector<Tensor, 1> cotangents;
  };
  // The references stay valid.
  State& state(Node* node) {
    auto [number, is_new] = numbers_.try_emplace(*node);
    if (is_new) {
      *number = states_.size();
      states_.emplace_back();
    }
    return states_[*number];
  }

  // Only floating-point and complex values have cotangents: a path through an integer or bool ends
  // there.
  static bool carries(const Value& value) { return is_inexact(value.type().dtype); }

  // Depth-first search without recursion; a node reaches an input if one of its operands does.
  std::vector<Node*> find_paths(std::span<const Tensor> outputs) {
    std::vector<Node*> order;
    std::vector<std::pair<Node*, std::size_t>> stack;
    auto enter = [&](Node* node) {
      // A node that is older than every input depends on none. Another thread may also be computing
      // it right now and dropping its operands.
      if (node->id() < oldest_input_) return;
      State& entered = state(node);
      if (entered.visited || entered.reaches_input) return;  // inputs are not entered
      check_can_follow(*node);
      entered.visited = true;
      stack.emplace_back(node, 0);
    };
    // Outputs are searched one at a time: reaches_input of a node is not valid until the node is
    // finished, and outputs may depend on one another.
    std::size_t next_output = 0;
    while (!stack.empty() || next_output < outputs.size()) {
      if (stack.empty()) {
        enter(outputs[next_output++].value().node());
        continue;
      }
      auto& [node, next] = stack.back();
      if (std::span<const Value> sources = sources_of(*node); next < sources.size()) {
        const Value& operand = sources[next++];
        if (carries(operand)) enter(operand.node());
        continue;
      }
      Node* done = node;
      stack.pop_back();
      bool reaches =
          std::any_of(sources_of(*done).begin(), sources_of(*done).end(), [&](const Value& source) {
            return carries(source) && state(source.node()).reaches_input;
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

  // A loop and the loops that supersede it (superseded.h) are differentiated once, as the last of
  // them.
  void find_repeated(const std::vector<Node*>& order) {
    std::vector<const Node*> nodes(order.begin(), order.end());
    std::unordered_map<const Node*, const Node*> superseded =
        superseded_nodes(nodes, std::vector<const Node*>(inputs_.begin(), inputs_.end()));
    if (superseded.empty()) return;
    for (Node* node : order) {
      const Node* most = node;
      for (auto next = superseded.find(most); next != superseded.end();
           next = superseded.find(most))
        most = next->second;
      if (most == node) continue;
      repeated_[node] = const_cast<Node*>(most);
      repeated_[most] = const_cast<Node*>(most);
    }
    for (const auto& [node, most] : repeated_) ++waiting_[most];
  }

  // Adds the cotangents of a superseded loop to those of the loop with the most results. Returns
  // true at the loop that was recorded first: by then all users of all of them have been visited.
  bool pass_on(Node* node, Node* most) {
    if (node != most) {
      InlineVector<Tensor, 1> cotangents = std::move(state(node).cotangents);
      for (std::size_t i = 0; i < cotangents.size(); ++i)
        add(Value(most, static_cast<std::uint32_t>(i)), cotangents[i]);
      state(node).cotangents.clear();
    }
    return --waiting_[most] == 0;
  }

  // Sets the gradients of the operands that need one.
  static void run_vjp(const Node& node, std::vector<Tensor>& operands, std::vector<Tensor>& results,
                      InlineVector<Tensor, 1>& cotangents, const InlineVector<bool, 4>& needed,
                      std::vector<Tensor>& gradients) {
    auto run = [&] {
      node.op().vjp({.node = node,
                     .operands = operands,
                     .results = results,
                     .cotangents = std::span<const Tensor>(cotangents.data(), cotangents.size()),
                     .needed = std::span<const bool>(needed.data(), needed.size()),
                     .bodies = &body_differentiator()},
                    gradients);
    };
    try {
      run();
    } catch (const AmbiguousSharding&) {
      // With replicated operands, inference is not ambiguous. add() reshards the cotangents like
      // their primals.
      for (std::vector<Tensor>* tensors : {&operands, &results})
        for (Tensor& tensor : *tensors) tensor = gathered(tensor);
      for (Tensor& cotangent : cotangents) cotangent = gathered(cotangent);
      gradients.assign(gradients.size(), Tensor());
      run();
    }
  }

  // Runs the vjp of `node` with the operands of `takes`, which are equal and were recorded earlier.
  void step(Node* node, const Node& takes) {
    State& own = state(node);
    if (own.cotangents.empty()) return;
    if (const Value* outer =
            internal::recorder().body ? internal::recorder().body->outside(*node) : nullptr) {
      internal::InheritSource line(node->where().of_derivative());
      Value inner(node);
      return add(*outer,
                 cotangent_of_captured(inner, *outer, cotangent_like(inner, own.cotangents[0])));
    }
    if (internal::is_custom_vjp(*node)) check_captures_nothing(*node);
    const OpDef& op = node->op();
    if (!op.vjp)
      throw Error(ErrorCode::kUnimplemented,
                  cat("[grad] ", op.name,
                      " has no derivative, and the result depends on an input through it"),
                  node->where());
    internal::InheritSource line(node->where().of_derivative());
    // A vjp runs inside the manual axes of its node, wherever the gradient was requested.
    std::optional<ManualAxes> place;
    if (node->annotations() && node->annotations()->manual)
      place = node->annotations()->manual->with_varying({});
    std::optional<internal::ManualScope> inside;
    if (place) inside.emplace(*place);
    std::vector<Tensor> operands, results, gradients(node->operands().size());
    InlineVector<bool, 4> needed;
    for (const Value& operand : takes.operands()) {
      operands.emplace_back(operand);
      needed.push_back(carries(operand) && state(operand.node()).reaches_input);
    }
    for (std::uint32_t i = 0; i < node->num_outputs(); ++i) results.emplace_back(Value(node, i));
    own.cotangents.resize(node->num_outputs());
    InlineVector<Tensor, 1> cotangents = std::move(own.cotangents);
    if (node->annotations())
      for (std::uint32_t i = 0; i < node->num_outputs(); ++i)
        cotangents[i] = cotangent_like(results[i].value(), cotangents[i]);
    run_vjp(*node, operands, results, cotangents, needed, gradients);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!needed[i] || !gradients[i].defined()) continue;
      internal_check(gradients[i].type() == operands[i].type(),
                     cat("[", op.name, "] the cotangent of operand ", i, " is ",
                         gradients[i].type(), ", but the operand is ", operands[i].type()));
      add(takes.operands()[i],
          node->annotations() ? cotangent_of_operand(*node, i, gradients[i]) : gradients[i]);
    }
  }

  // Throws if the function of a custom_vjp captures a value that depends on an input: it has
  // derivatives with respect to its arguments only.
  void check_captures_nothing(const Node& custom) {
    std::unordered_set<const Node*> seen;
    for (const Value& argument : internal::custom_arguments(custom)) seen.insert(argument.node());
    std::span<const Value> results = internal::custom_results(custom);
    std::vector<Value> waiting(results.begin(), results.end());
    while (!waiting.empty()) {
      Value value = std::move(waiting.back());
      waiting.pop_back();
      const std::size_t* found = numbers_.find(*value.node());
      bool reaches = carries(value) && found && states_[*found].reaches_input;
      if (!reaches || !seen.insert(value.node()).second) continue;
      if (value->op().traits.stops_gradient) continue;
      if (inputs_.contains(value.node()))
        throw Error(
            ErrorCode::kUnimplemented,
            "[custom_vjp] cannot differentiate with respect to a captured value: the function has "
            "derivatives with respect to its arguments only. Pass the value as an argument",
            custom.where())
            .with_note(
                cat("the captured value depends on ", value.type(), " made at ", value->where()));
      bool is_custom = internal::is_custom_vjp(*value.node());
      std::span<const Value> sources =
          is_custom ? internal::custom_results(*value.node()) : sources_of(*value.node());
      waiting.insert(waiting.end(), sources.begin(), sources.end());
    }
  }

  std::unordered_set<const Node*> inputs_;
  NodeTable<std::size_t> numbers_;  // positions in states_
  std::deque<State> states_;
  std::unordered_map<const Node*, Node*> repeated_;
  std::unordered_map<const Node*, int> waiting_;
  std::uint64_t oldest_input_ = std::numeric_limits<std::uint64_t>::max();
};

Tensor with_sharding_of(const Tensor& primal, Tensor cotangent) {
  std::optional<Sharding> sharding = primal.sharding();
  if (sharding) sharding = sharding->with_unreduced({});
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
      throw_invalid(where, "[vjp] cotangent ", i, " is ", cotangents[i].type(),
                    ", but its output is ", outputs[i].type());
  // All that is computed from a weakly typed number is computed from its wide number.
  std::vector<Tensor> sources;
  for (const Tensor& input : inputs) {
    Tensor wide = wide_number(input);
    sources.push_back(wide.defined() ? wide : input);
  }
  Backward pass(sources);
  pass.run(outputs, cotangents);
  std::vector<Tensor> gradients;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& input = inputs[i];
    internal::InheritSource line(where);
    Tensor cotangent = pass.cotangent(sources[i].value());
    cotangent = cotangent.defined() ? astype(cotangent, input.dtype())
                                    : Tensor(zeros(input.shape(), input.dtype()));
    gradients.push_back(with_sharding_of(input, cotangent_like(input.value(), cotangent)));
  }
  return gradients;
}

}  // namespace meshard

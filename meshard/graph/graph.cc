#include "meshard/graph/graph.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "meshard/graph/body.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/node_table.h"

namespace meshard {
Graph Graph::build(std::span<const Value> parameters, std::span<const Value> results,
                   std::uint64_t trace, std::vector<UnrolledLayers> unrolled) {
  auto state = std::make_shared<State>();
  state->unrolled = std::move(unrolled);
  state->parameters.assign(parameters.begin(), parameters.end());
  state->results.assign(results.begin(), results.end());

  NodeSet seen;
  for (const Value& parameter : parameters) seen.insert(*parameter.node());
  std::vector<std::pair<std::uint64_t, const Node*>> found;  // by id, which is unique
  std::vector<const Value*> stack;
  for (const Value& result : results) stack.push_back(&result);
  while (!stack.empty()) {
    const Value& value = *stack.back();
    stack.pop_back();
    Node* node = value.node();
    if (!seen.insert(*node)) continue;
    if (value.storage() || node->trace() != trace) {
      if (&node->op() == &parameter_op)
        throw_invalid(node->where(),
                      "[jit] a traced value is used outside its trace; it was an argument here. "
                      "Return it from the function instead of keeping it");
      // All results of a computed node: each is a separate leaf.
      for (std::uint32_t i = 0; i < node->num_outputs(); ++i) state->captured.emplace_back(node, i);
      continue;
    }
    if (&node->op() == &parameter_op)
      throw_invalid(node->where(),
                    "[graph] a value depends on a placeholder that was made here for an argument "
                    "of a traced function. A placeholder has no elements: inside vmap only shapes "
                    "and dtypes are known. Return the value, and read the result");
    found.emplace_back(node->id(), node);
    for (const Value& operand : node->operands()) stack.push_back(&operand);
  }
  std::sort(found.begin(), found.end());
  state->nodes.reserve(found.size());
  for (const auto& [id, node] : found) state->nodes.push_back(node);
  std::sort(state->captured.begin(), state->captured.end(), [](const Value& a, const Value& b) {
    return std::pair(a->id(), a.index()) < std::pair(b->id(), b.index());
  });

  std::uint32_t number = 0;
  auto numbers = std::make_shared<NodeTable<std::uint32_t>>();
  auto add = [&](const Node* node) { *numbers->try_emplace(*node).first = number++; };
  for (const Value& leaf : state->parameters) add(leaf.node());
  for (const Value& leaf : state->captured) {
    if (leaf.index() == 0)
      add(leaf.node());
    else
      ++number;  // numbered from its node's number
  }
  for (const Node* node : state->nodes) add(node);
  state->numbers = std::move(numbers);

  Graph graph;
  graph.state_ = std::move(state);
  return graph;
}

std::uint32_t Graph::number(const Node* node) const {
  const std::uint32_t* number = state_->numbers ? state_->numbers->find(*node) : nullptr;
  internal_check(number != nullptr, "[graph] a node outside the graph was requested");
  return *number;
}

bool Graph::contains(const Node* node) const {
  return state_->numbers && state_->numbers->contains(*node);
}

Graph Graph::with_results(std::span<const Value> results) const {
  auto state = std::make_shared<State>(*state_);
  state->results.assign(results.begin(), results.end());
  Graph graph;
  graph.state_ = std::move(state);
  return graph;
}

SourceLocation Graph::source(std::uint32_t number) const {
  std::size_t n = number;
  if (n < state_->parameters.size()) return state_->parameters[n]->where();
  n -= state_->parameters.size();
  if (n < state_->captured.size()) return state_->captured[n]->where();
  n -= state_->captured.size();
  return n < state_->nodes.size() ? state_->nodes[n]->where() : SourceLocation{};
}

const Node* Graph::find(std::string_view path) const {
  std::uint32_t at = 0;
  auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), at);
  if (error != std::errc() || at < num_leaves() || at - num_leaves() >= nodes().size())
    return nullptr;
  const Node* node = nodes()[at - num_leaves()];
  path.remove_prefix(static_cast<std::size_t>(end - path.data()));
  if (path.empty()) return node;
  if (path.front() != '.') return nullptr;
  path.remove_prefix(1);
  std::size_t body = 0;
  auto [after, failed] = std::from_chars(path.data(), path.data() + path.size(), body);
  std::span<const Body> bodies = bodies_of(*node);
  if (failed != std::errc() || body >= bodies.size()) return nullptr;
  path.remove_prefix(static_cast<std::size_t>(after - path.data()));
  if (path.empty() || path.front() != '.') return nullptr;
  return bodies[body].graph().find(path.substr(1));
}

}  // namespace meshard

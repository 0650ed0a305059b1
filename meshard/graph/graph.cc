#include "meshard/graph/graph.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>

#include "meshard/graph/body.h"
#include "meshard/graph/leaf.h"

namespace meshard {
namespace {

std::size_t slot_of(const Node* node, std::size_t slots) {
  return hash_combine(0, reinterpret_cast<std::size_t>(node) >> 4) & (slots - 1);
}

// A growing set of nodes, used during the search; the graph's table is built once, at the end.
class NodeSet {
 public:
  NodeSet() : slots_(256, nullptr) {}
  bool insert(const Node* node) {
    if (2 * ++count_ > slots_.size()) grow();
    return place(node) ? true : (--count_, false);
  }

 private:
  bool place(const Node* node) {
    std::size_t at = slot_of(node, slots_.size());
    while (slots_[at]) {
      if (slots_[at] == node) return false;
      at = (at + 1) & (slots_.size() - 1);
    }
    slots_[at] = node;
    return true;
  }
  void grow() {
    std::vector<const Node*> before(slots_.size() * 2, nullptr);
    before.swap(slots_);
    for (const Node* node : before)
      if (node) place(node);
  }
  std::vector<const Node*> slots_;
  std::size_t count_ = 0;
};

}  // namespace

Graph Graph::build(std::span<const Value> parameters, std::span<const Value> results,
                   std::uint64_t trace, std::vector<UnrolledLayers> unrolled) {
  auto state = std::make_shared<State>();
  state->unrolled = std::move(unrolled);
  state->parameters.assign(parameters.begin(), parameters.end());
  state->results.assign(results.begin(), results.end());

  NodeSet seen;
  for (const Value& parameter : parameters) seen.insert(parameter.node());
  std::vector<const Value*> stack;
  for (const Value& result : results) stack.push_back(&result);
  while (!stack.empty()) {
    const Value& value = *stack.back();
    stack.pop_back();
    Node* node = value.node();
    if (!seen.insert(node)) continue;
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
    state->nodes.push_back(node);
    for (const Value& operand : node->operands()) stack.push_back(&operand);
  }
  std::sort(state->nodes.begin(), state->nodes.end(),
            [](const Node* a, const Node* b) { return a->id() < b->id(); });
  std::sort(state->captured.begin(), state->captured.end(), [](const Value& a, const Value& b) {
    return std::pair(a->id(), a.index()) < std::pair(b->id(), b.index());
  });

  std::size_t total = state->parameters.size() + state->captured.size() + state->nodes.size();
  state->numbers.assign(std::bit_ceil(2 * total + 2), {nullptr, 0});
  std::uint32_t number = 0;
  auto add = [&](const Node* node) {
    std::size_t at = slot_of(node, state->numbers.size());
    while (state->numbers[at].first) at = (at + 1) & (state->numbers.size() - 1);
    state->numbers[at] = {node, number++};
  };
  for (const Value& leaf : state->parameters) add(leaf.node());
  for (const Value& leaf : state->captured) {
    if (leaf.index() == 0)
      add(leaf.node());
    else
      ++number;  // numbered from its node's number
  }
  for (const Node* node : state->nodes) add(node);

  Graph graph;
  graph.state_ = std::move(state);
  return graph;
}

std::uint32_t Graph::number(const Node* node) const {
  const auto& table = state_->numbers;
  std::size_t at = slot_of(node, table.size());
  while (table[at].first != node) {
    internal_check(table[at].first != nullptr, "[graph] a node outside the graph was requested");
    at = (at + 1) & (table.size() - 1);
  }
  return table[at].second;
}

bool Graph::contains(const Node* node) const {
  const auto& table = state_->numbers;
  if (table.empty()) return false;
  std::size_t at = slot_of(node, table.size());
  while (table[at].first && table[at].first != node) at = (at + 1) & (table.size() - 1);
  return table[at].first != nullptr;
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

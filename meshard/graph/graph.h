// Graph: a recorded program cut out of the web of nodes: parameters in, results out.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/fingerprint.h"
#include "meshard/graph/node.h"

namespace meshard {

/// A handle on an immutable program: the nodes that its results need, in an order in which every
/// operand stands before its users. Leaves come first: the parameters in the caller's order, then
/// the captured values (stored arrays, and values recorded outside the trace) as they were met.
class Graph {
 public:
  Graph() = default;

  /// The program that computes `results` from `parameters`. Nodes of another trace, and nodes that
  /// are computed already, are captured, not entered.
  /// @error invalid argument if a result needs a parameter of another trace (a leaked traced
  /// value).
  static Graph build(std::span<const Value> parameters, std::span<const Value> results,
                     std::uint64_t trace);

  /// The same nodes with other results.
  /// @pre each is a value of nodes() or a leaf of this graph, and they need all of nodes().
  Graph with_results(std::span<const Value> results) const;

  std::span<const Value> parameters() const { return state_->parameters; }
  std::span<const Value> captured() const { return state_->captured; }
  std::span<const Value> results() const { return state_->results; }
  /// The op nodes, without leaves, in order of recording.
  std::span<const Node* const> nodes() const { return state_->nodes; }

  /// The number of a node: leaves first (parameters; captured, by its first result), then nodes().
  /// This prints as `%n`, and `n<number>` names the op in a compiled module.
  std::uint32_t number(const Node* node) const;
  /// True if it is a node or a leaf of this graph.
  bool contains(const Node* node) const;
  std::uint32_t num_leaves() const {
    return static_cast<std::uint32_t>(state_->parameters.size() + state_->captured.size());
  }
  /// The source line of the node with this number. Unknown for numbers out of range.
  SourceLocation source(std::uint32_t number) const;
  /// The node that `path` names as a compiled module does: `7`, or `7.0.3` for number 3 of the
  /// first program inside of node 7. nullptr: none, or a leaf.
  const Node* find(std::string_view path) const;

  /// Equal for programs that compute the same from the same types and shardings; source lines do
  /// not count.
  Fingerprint fingerprint() const;
  /// Appends the bytes that the fingerprint is made of: equal exactly for such programs.
  void append_key(std::string& out) const;

 private:
  class Numbers;
  struct State {
    std::vector<Value> parameters, captured, results;
    std::vector<const Node*> nodes;
    // Open addressing, power of two, at most half full.
    std::vector<std::pair<const Node*, std::uint32_t>> numbers;
  };
  std::shared_ptr<const State> state_ = std::make_shared<State>();
};

}  // namespace meshard

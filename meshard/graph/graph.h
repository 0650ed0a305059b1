// Graph: a recorded program, extracted from the recorded nodes, with parameters and results.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/fingerprint.h"
#include "meshard/graph/node.h"
#include "meshard/graph/unrolled_layers.h"

namespace meshard {

template <class T>
class NodeTable;

/// A handle on an immutable program: the nodes that its results need, in topological order. Leaves
/// come first: the parameters in the caller's order, then the captured values (stored arrays, and
/// values recorded outside the trace) in the order in which they were made.
class Graph {
 public:
  Graph() = default;

  /// Builds the program that computes `results` from `parameters`. Nodes of another trace, and
  /// nodes that are already computed, are captured; their operands are not visited.
  /// @error invalid argument if a result needs a parameter of another trace (a leaked traced
  /// value), or one of this trace that is not in `parameters`.
  static Graph build(std::span<const Value> parameters, std::span<const Value> results,
                     std::uint64_t trace, std::vector<UnrolledLayers> unrolled = {});

  /// The same nodes with other results.
  /// @pre each is a value of nodes() or a leaf of this graph, and they need all of nodes().
  Graph with_results(std::span<const Value> results) const;

  std::span<const Value> parameters() const { return state_->parameters; }
  std::span<const Value> captured() const { return state_->captured; }
  std::span<const Value> results() const { return state_->results; }
  /// The op nodes, without leaves, in order of recording.
  std::span<const Node* const> nodes() const { return state_->nodes; }
  /// Layers of an nn::Layers that are not one loop, in the program and in its bodies.
  std::span<const UnrolledLayers> unrolled_layers() const { return state_->unrolled; }

  /// The number of a node: leaves first (parameters, then captured values, by a node's first
  /// result), then nodes(). It is printed as `%n`; in a compiled module, the op is named
  /// `n<number>`.
  std::uint32_t number(const Node* node) const;
  /// True if the node is a node or a leaf of this graph.
  bool contains(const Node* node) const;
  std::uint32_t num_leaves() const {
    return static_cast<std::uint32_t>(state_->parameters.size() + state_->captured.size());
  }
  /// The source line of the node with this number; unknown if the number is out of range.
  SourceLocation source(std::uint32_t number) const;
  /// Finds a node by its path in a compiled module: `7`, or `7.0.3` for number 3 of the first body
  /// of node 7. nullptr if there is no such node, or if it is a leaf.
  const Node* find(std::string_view path) const;

  /// Equal for programs that compute the same from the same types and shardings; source lines are
  /// ignored (graph_fingerprint.cc).
  Fingerprint fingerprint() const;
  /// Appends the bytes that the fingerprint hashes; they are equal exactly for such programs.
  void append_key(std::string& out) const;

 private:
  struct State {
    std::vector<Value> parameters, captured, results;
    std::vector<const Node*> nodes;
    std::vector<UnrolledLayers> unrolled;
    std::shared_ptr<const NodeTable<std::uint32_t>> numbers;  // null for an empty program
  };
  std::shared_ptr<const State> state_ = std::make_shared<State>();
};

}  // namespace meshard

// The recorded nodes among which equal layers are searched, and the stacked tensors whose slices
// they use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "meshard/graph/node.h"
#include "meshard/graph/node_table.h"

namespace meshard::internal {

/// Nodes in the order of recording. A node's position is its index in this order.
class LayerRegion {
 public:
  explicit LayerRegion(std::vector<const Node*> nodes);
  /// The nodes that were recorded since the beginning of a function and that its results need,
  /// without what is computed, belongs to another trace than `trace`, or was recorded before
  /// node number `first`.
  LayerRegion(std::span<const Value> results, std::uint64_t trace, std::uint64_t first);

  std::size_t size() const { return nodes_.size(); }
  const Node& node(std::size_t at) const { return *nodes_[at]; }
  const std::vector<Value>& results() const { return results_; }
  /// Empty for values from outside.
  std::optional<std::size_t> position(const Value& value) const;
  /// Equal for nodes with the same attributes.
  const std::string& key(std::size_t at);
  /// True if the nodes have the same op, attributes, annotations and types of results.
  bool same_call(std::size_t a, std::size_t b);

 private:
  std::vector<Value> results_;
  std::vector<const Node*> nodes_;
  NodeTable<std::size_t> positions_;
  std::vector<std::string> keys_;
};

bool same_annotations(const Node& a, const Node& b);

/// One stacked tensor, all of whose slices are used. Numbers are positions, by layer.
struct SlicedStack {
  Value stacked;
  std::vector<std::vector<std::size_t>> slices;
  std::vector<std::size_t> first_use;
};
std::vector<SlicedStack> sliced_stacks(const LayerRegion& region);

/// Stacked tensors of the same number of layers whose slices are used together: layer i of each is
/// first used before layer i + 1 of any.
struct LayerCluster {
  std::int64_t count = 0;
  /// The last slices are used first.
  bool reverse = false;
  std::vector<const SlicedStack*> stacks;
  /// For each layer in the order of use, the positions of the first and last first uses.
  std::vector<std::pair<std::size_t, std::size_t>> uses;
};
/// The regions with at least three layers; layers inside of layers come first.
std::vector<LayerCluster> layer_clusters(const std::vector<SlicedStack>& stacks);

}  // namespace meshard::internal

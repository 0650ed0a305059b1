// Finds the layers of an nn::Layers that a plain loop recorded: equal groups of nodes, each with
// its own slices of the same stacked tensors.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "meshard/graph/tensor.h"
#include "meshard/graph/unrolled_layers.h"

namespace meshard::internal {

/// A value: a sequence of equal layers, as a loop would compute them. The loop's body is what layer
/// 1 records, in terms of its slices, of the values that layer 0 passes on to it, and of values
/// from outside.
struct EqualLayers {
  std::int64_t count = 0;
  /// The last slice of each stacked tensor belongs to the first layer.
  bool reverse = false;
  /// The stacked tensors, and the values that represent them in layer 1.
  struct Stack {
    Value stacked;
    std::vector<Value> slices;
  };
  std::vector<Stack> stacks;
  /// A value that each layer passes on to the next one, or one of the last layer that is used
  /// afterwards.
  struct Carry {
    /// What the first layer starts with; none if no layer uses it.
    Value initial;
    /// What layer 0 passes on to layer 1 (none if no layer uses it), layer 1 to layer 2, and the
    /// result of the last layer (none if nothing uses it).
    Value from_first, from_second, from_last;
  };
  std::vector<Carry> carries;
  /// Values from outside that all layers use: those that depend on nothing but constants, and all
  /// others.
  std::vector<Value> closed, invariant;
  /// A small value from outside of which each layer uses its own, by number of the slice, and the
  /// one that represents it in layer 1.
  struct Varying {
    std::vector<Value> by_layer;
    Value in_body;
  };
  std::vector<Varying> varying;
  /// The nodes after the layers that depend on them.
  std::vector<const Node*> after;
  /// The first node of the first layer.
  SourceLocation where;
};

/// The search's result: at most one of the two has a value; none if there are no layers.
struct LayerSearch {
  std::optional<EqualLayers> found;
  /// Layers that a loop cannot compute.
  std::vector<UnrolledLayers> unrolled;
};

/// Finds equal layers among the nodes that `results` need, without what is computed, belongs to
/// another trace than `trace`, or was recorded before node number `first`. Takes linear time.
LayerSearch find_equal_layers(std::span<const Value> results, std::uint64_t trace,
                              std::uint64_t first);

}  // namespace meshard::internal

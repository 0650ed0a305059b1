// Finds consecutive equal layers in a program, which an nn::Layers or repeat() would record once.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "meshard/base/source_location.h"

namespace meshard {

class Graph;

/// A value: consecutive equal layers that a plain loop recorded.
struct RollingAdvice {
  /// The number of layers.
  std::size_t layers = 0;
  /// The number of nodes in one layer.
  std::size_t nodes_per_layer = 0;
  /// The number of tensors that each layer has of its own: parameters, or slices of stacked ones.
  std::size_t parameters_per_layer = 0;
  /// The number of nodes in the whole program, as recorded and if the layers were
  /// recorded once, also in the backward pass.
  std::size_t nodes_before = 0, nodes_after = 0;
  /// The first node of the first layer.
  SourceLocation where;

  /// `model.cc:42: 12 equal layers in a row, 95 nodes each; an nn::Layers or repeat() records
  /// one: 1500 nodes become 455`
  std::string to_string() const;
};

/// Finds the largest sequence of equal layers in a program; empty if none has 3 layers. Layers are
/// consecutive groups of nodes with equal ops, attributes and types; each uses results of the
/// previous one and has tensors of its own. Takes linear time.
std::optional<RollingAdvice> rolling_advice(const Graph& graph);

}  // namespace meshard

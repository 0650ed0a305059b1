// Finds equal layers in a row in a recorded program: what repeat() would record once.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "meshard/base/source_location.h"
#include "meshard/graph/graph.h"

namespace meshard {

/// A value: layers that a plain loop recorded one after the other.
struct RollingAdvice {
  /// How many.
  std::size_t layers = 0;
  /// Nodes of one of them.
  std::size_t nodes_per_layer = 0;
  /// Tensors that each layer has for itself: its parameters, or its slices of stacked ones.
  std::size_t parameters_per_layer = 0;
  /// Nodes of the whole program; as recorded, and with one layer instead of all of them, on the way
  /// back too.
  std::size_t nodes_before = 0, nodes_after = 0;
  /// The first node of the first layer.
  SourceLocation where;

  /// `model.cc:42: 12 equal layers in a row, 95 nodes each; repeat() records one: 1500 nodes become
  /// 455`
  std::string to_string() const;
};

/// The largest row of equal layers of a program: groups of nodes, one after the other, with equal
/// ops, attributes and types, of which each takes what the one before made, and has tensors of its
/// own. Empty if there is none of at least 3 layers. Takes time in proportion to the program.
std::optional<RollingAdvice> rolling_advice(const Graph& graph);

}  // namespace meshard

// The order in which a program is written, and the grouping of its nodes into manual regions.
#pragma once
#include <cstdint>
#include <vector>

#include "meshard/graph/annotation.h"
#include "meshard/graph/graph.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// How a value crosses the border of a manual region. A value with sharding `sharding` outside is
/// `local` inside. Outside it has the padded shape of `full`.
struct RegionCrossing {
  /// The value inside; for an input, the value that the region's argument represents. May belong to
  /// a region further inside; then the value that carries it crosses the border.
  Value local;
  /// The value outside. Empty for a local value that is carried from one region to another.
  Value full;
  Sharding sharding;
  /// The type inside the border: the type of `local`, or of the value that carries it.
  TensorType type;
};

/// One step of the output: a node or a region.
struct ProgramStep {
  const Node* node = nullptr;
  /// An index into ProgramOrder::regions, used if there is no node.
  std::size_t region = 0;
};

/// Nodes inside the same manual axes, written as one `sdy.manual_computation`. None of them needs a
/// value from outside that is computed from another one of them.
struct ManualRegion {
  /// The axes of this region and of the enclosing regions.
  ManualAxes place;
  /// In order of recording; without the nodes that enter the region, with the nodes of inner
  /// regions.
  std::vector<const Node*> nodes = {};
  /// The steps as which the region is written.
  std::vector<ProgramStep> steps = {};
  /// Values that enter, outer values that are used directly, and local values of earlier regions.
  std::vector<RegionCrossing> inputs = {};
  /// Values that leave, and local values that later regions use.
  std::vector<RegionCrossing> outputs = {};
};

/// The steps of a program, each after the steps that it needs. For a program without manual axes,
/// these are its nodes in order of recording.
///
/// A full value has the level of its highest operand. A local value has at least the level of its
/// local operands, and is above the full values that it uses. All local values on one level inside
/// the
/// same manual axes form one region, which is written before the full values of its level. The
/// contents of a region are ordered in the same way: there, the region's own local values count as
/// full, and those of inner regions as local.
struct ProgramOrder {
  std::vector<ProgramStep> steps;
  /// Includes nested regions.
  std::vector<ManualRegion> regions;

  /// @param depth for a body: the number of regions that its node is in
  explicit ProgramOrder(const Graph& graph, std::size_t depth = 0);
};

}  // namespace meshard

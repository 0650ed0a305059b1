// In which order a program is written, and which of its nodes stand together in a manual region.
#pragma once
#include <cstdint>
#include <vector>

#include "meshard/graph/annotation.h"
#include "meshard/graph/graph.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// How a value crosses the border of a manual region: what lies outside as `sharding` says is
/// `local` inside. Outside it has the padded shape of `full`.
struct RegionCrossing {
  /// The value inside: of an input, what the region's argument is called there. May be one of a
  /// region further inside: then what carries it is meant.
  Value local;
  /// The value outside. Empty for a local value that is carried from one region to another.
  Value full;
  Sharding sharding;
  /// Inside the border: the type of `local`, or of what carries it.
  TensorType type;
};

/// What is written at once: one node, or a region.
struct ProgramStep {
  const Node* node = nullptr;
  /// Index into ProgramOrder::regions, if there is no node.
  std::size_t region = 0;
};

/// Nodes inside the same manual axes that need no value outside of these made from one another: one
/// `sdy.manual_computation`.
struct ManualRegion {
  /// The axes of this region, and of those around it.
  ManualAxes place;
  /// In order of recording, without those that enter; with those of regions inside.
  std::vector<const Node*> nodes = {};
  /// What the region is written as.
  std::vector<ProgramStep> steps = {};
  /// Outer values that enter, those that may be used as they are, and local values of earlier
  /// regions.
  std::vector<RegionCrossing> inputs = {};
  /// Values that leave, and local values that later regions take.
  std::vector<RegionCrossing> outputs = {};
};

/// The steps of a program, each behind those it needs. A program without manual axes is its nodes
/// in order of recording.
///
/// A full value stands on the level of its highest operand, a local one on the level above the full
/// values that enter it; all local values of a level inside the same manual axes are one region,
/// which is written before the other full values of its level. What a region does is ordered the
/// same way, where its own local values count as full ones, and those of regions inside it as
/// local.
struct ProgramOrder {
  std::vector<ProgramStep> steps;
  /// Those inside others too.
  std::vector<ManualRegion> regions;

  /// @param depth of a body: in how many regions its node is
  explicit ProgramOrder(const Graph& graph, std::size_t depth = 0);
};

}  // namespace meshard

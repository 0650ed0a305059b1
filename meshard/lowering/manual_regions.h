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
  /// The value inside: of an input, what the region's argument is called there.
  Value local;
  /// The value outside. Empty for a local value that goes from one region to another.
  Value full;
  Sharding sharding;
};

/// Nodes inside the same manual axes that need no full value made from one another: one
/// `sdy.manual_computation`.
struct ManualRegion {
  Mesh mesh;
  AxisSet axes;
  /// In order of recording, without those that enter.
  std::vector<const Node*> nodes = {};
  /// Full values that enter, free ones, and local values of earlier regions.
  std::vector<RegionCrossing> inputs = {};
  /// Full values that leave, and local values that later regions take.
  std::vector<RegionCrossing> outputs = {};
};

/// What is written at once: one node, or a region.
struct ProgramStep {
  const Node* node = nullptr;
  /// Index into ProgramOrder::regions, if there is no node.
  std::size_t region = 0;
};

/// The steps of a program, each behind those it needs. A program without manual axes is its nodes
/// in order of recording.
///
/// A full value stands on the level of its highest operand, a local one on the level above the full
/// values that enter it; all local values of a level inside the same manual axes are one region,
/// which is written before the other full values of its level.
struct ProgramOrder {
  std::vector<ProgramStep> steps;
  std::vector<ManualRegion> regions;

  explicit ProgramOrder(const Graph& graph);
};

}  // namespace meshard

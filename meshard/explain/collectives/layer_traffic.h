// How much the collectives of each layer move.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/explain/collectives/logical.h"

namespace meshard {

/// Value type: the collectives of one layer in one phase that serve one purpose.
struct LayerTraffic {
  /// `MLP/b0_up`, `loop/attn`; empty: those outside every layer, or whose layer is unknown.
  std::string layer;
  ProgramPhase phase = ProgramPhase::kUnknown;
  PurposeKind purpose = PurposeKind::kUnknown;
  /// Number of logical collectives.
  std::int64_t count = 0;
  /// Number of their executions in one run; those in a loop of unknown length count once.
  std::int64_t executions = 0;
  /// Bytes of all executions on one device.
  std::int64_t total_bytes = 0;

  MESHARD_FIELDS(layer, phase, purpose, count, executions, total_bytes)
  /// `loop/mlp, backward: 2 collectives run 24 times, gradient, 3 MiB`
  std::string to_string() const;
  friend bool operator==(const LayerTraffic&, const LayerTraffic&) = default;
};

/// A row for each layer, phase and purpose, in order of first appearance; those outside every layer
/// are last. Empty if no collective is known to be in a layer; `loop` counts as one if the phase is
/// known.
std::vector<LayerTraffic> layer_traffic(const std::vector<LogicalCollective>& collectives);

}  // namespace meshard

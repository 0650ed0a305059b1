// Collectives as a program has them, where a compiler writes one as several instructions.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/explain/collectives/collective.h"
#include "meshard/hlo/module.h"

namespace meshard {

class Executions;

/// Value type: one collective, and the instructions that implement it.
struct LogicalCollective {
  /// The whole collective: its kind, all axes it runs over, the bytes that one device puts in and
  /// gets out. Origin, cause and purpose come from its first instruction that has them.
  Collective whole;
  /// The names of its instructions, in module order; the first is whole.instruction.
  std::vector<std::string> instructions;

  MESHARD_FIELDS(whole, instructions)
  friend bool operator==(const LogicalCollective&, const LogicalCollective&) = default;
};

/// Merges the collective instructions of a module:
///
/// - the fragments of one collective that a compiler spreads over several fusions;
/// - the send and the receive of one transfer between slices: it has the kind of the whole
/// transfer;
/// - the steps of a collective over slices: a reduce-scatter inside the slice, an all-reduce
/// between
///   slices and an all-gather are one all-reduce over all these axes; an all-reduce inside the
///   slice and one between slices are one all-reduce; a gather between slices and one inside the
///   slice are one all-gather; a permutation between slices with one inside each slice is one
///   permutation.
///
/// A reduce-scatter whose result is added up between slices and stays split is not merged: the
/// program has two collectives. In the order of the first instructions.
/// @pre the collectives were found in this module
std::vector<LogicalCollective> find_logical_collectives(const Executions& executions,
                                                        const std::vector<Collective>& collectives);

/// The same without the module: merges fragments only, which follow the collective that they
/// continue and have its kind and channel.
std::vector<LogicalCollective> merge_fragments(const std::vector<Collective>& collectives);

/// The whole collectives, without their instructions.
std::vector<Collective> whole_collectives(const std::vector<LogicalCollective>& logical);

/// Value type: the collectives of one layer in one phase that serve one purpose.
struct LayerTraffic {
  /// `MLP/b0_up`, `loop/attn`; empty: collectives outside every layer, or with an unknown layer.
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

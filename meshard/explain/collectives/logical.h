// Collectives as a program has them, where a compiler writes one as several instructions.
#pragma once
#include <string>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/explain/collectives/collective.h"
#include "meshard/hlo/executions.h"

namespace meshard {

/// Value type: one collective, and the instructions that implement it.
struct LogicalCollective {
  /// The whole collective: its kind, all axes it runs over, the bytes that one device puts in and
  /// gets out. Origin, cause and purpose are those of its first instruction that has them.
  Collective whole;
  /// The names of its instructions, in module order; the first is whole.instruction.
  std::vector<std::string> instructions;

  MESHARD_FIELDS(whole, instructions)
  friend bool operator==(const LogicalCollective&, const LogicalCollective&) = default;
};

/// Merges the collective instructions of a module:
///
/// - the fragments of one collective that a compiler spreads over several fusions;
/// - the send and the receive of one transfer between slices: its kind is what they perform;
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

}  // namespace meshard

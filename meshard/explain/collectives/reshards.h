// Reshards: collectives that only move data, and why the partitioner needs them.
#pragma once
#include <string_view>
#include <vector>

#include "meshard/explain/collectives/collective.h"
#include "meshard/explain/program_facts.h"
#include "meshard/explain/value_placement.h"
#include "meshard/hlo/module.h"

namespace meshard {

/// One reshard for each collective that gathers, exchanges or permutes a value, in order. Excludes
/// steps of windowed einsums, transfers between slices, and collective ops of the program.
///
/// The shardings before and after come from the module after propagation: the collective names its
/// consumer op, and the operand of that op whose shards match the collective is used. A gather of a
/// whole value that is sliced right afterward is a full rematerialization.
/// @param compiled the module that the collectives were found in
/// @param propagated the module after sharding propagation; null: shardings are omitted
std::vector<Reshard> find_reshards(const HloModule& compiled,
                                   const std::vector<Collective>& collectives,
                                   const HloModule* propagated, const ProgramFacts& facts);

/// The full rematerializations that XLA's partitioner warns about in a log. The warning is
/// `Involuntary full rematerialization. The compiler was not able to go from sharding A to B
/// without doing a full rematerialization of the tensor for HLO operation: ...`
/// (xla/service/spmd/spmd_partitioner.cc).
std::vector<Reshard> rematerializations_in_log(std::string_view log);

/// The collectives with what they move:
/// - Collective::tensor: of a reshard, the value's full type. Otherwise what the collective's first
///   place names in the graph: an argument, or an op with its result type; for a module from
///   elsewhere, the intermediate with the place's name. Empty if none of these is known.
/// - The shardings of the reshard that names the collective. Its purpose is then a reshard, unless
///   a weight or a gradient is moved.
std::vector<Collective> with_moves(std::vector<Collective> collectives,
                                   const std::vector<Reshard>& reshards,
                                   const std::vector<ValuePlacement>& intermediates,
                                   const Graph* graph);

/// The values produced by named instructions, each name once. Values that the user marked come
/// first, then the others, largest first. For a recorded program, values are graph nodes named by
/// op, with the source line; otherwise they have the module's op names.
/// @param propagated the module after sharding propagation
std::vector<ValuePlacement> find_intermediates(const HloModule& propagated,
                                               const ProgramFacts& facts);

/// The tensor type of an instruction's result; none for tuples and unknown element types.
std::optional<TensorType> tensor_type_of(const HloShape& shape);

}  // namespace meshard

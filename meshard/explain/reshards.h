// Reshardings: collectives that make no new numbers, and why the partitioner needs them.
#pragma once
#include <string_view>
#include <vector>

#include "meshard/explain/program_facts.h"
#include "meshard/explain/reshard.h"
#include "meshard/pjrt/hlo_module.h"

namespace meshard {

/// One resharding for each collective that gathers, exchanges or permutes a value, in their order;
/// steps of windowed einsums, transfers between slices, and collectives that the program calls for
/// by name are none.
///
/// The shardings before and after come from the module after propagation: the collective names the
/// op that it serves, whose operands are looked through for the one with the collective's shards.
/// A gather of all of a value that is cut right after is a full rematerialization.
/// @param compiled the module that the collectives were found in
/// @param propagated the module after sharding propagation; null: shardings are not told
std::vector<Reshard> find_reshards(const pjrt::HloModule& compiled,
                                   const std::vector<Collective>& collectives,
                                   const pjrt::HloModule* propagated, const ProgramFacts& facts);

/// What XLA's partitioner warns of: `Involuntary full rematerialization. The compiler was not able
/// to go from sharding A to B without doing a full rematerialization of the tensor for HLO
/// operation: ...` (xla/service/spmd/spmd_partitioner.cc).
std::vector<Reshard> rematerializations_in_log(std::string_view log);

}  // namespace meshard

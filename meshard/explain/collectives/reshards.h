// Reshards: collectives that only move data, and why the partitioner needs them.
#pragma once
#include <string_view>
#include <vector>

#include "meshard/explain/collectives/reshard.h"
#include "meshard/explain/program_facts.h"
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

}  // namespace meshard

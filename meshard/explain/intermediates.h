// Values inside a program, and the shardings that propagation gave them.
#pragma once
#include <vector>

#include "meshard/explain/program_facts.h"
#include "meshard/explain/value_placement.h"
#include "meshard/pjrt/hlo_module.h"

namespace meshard {

/// The values that instructions with a name of their own make, each name once: first those that the
/// user marked, then the others, largest first. Of a recorded program the graph's nodes by their
/// op, with the user's line; else by the module's op names.
/// @param propagated the module after sharding propagation
std::vector<ValuePlacement> find_intermediates(const pjrt::HloModule& propagated,
                                               const ProgramFacts& facts);

/// The tensor type of an instruction's result; none for tuples and types that are not known.
std::optional<TensorType> tensor_type_of(const pjrt::HloShape& shape);

}  // namespace meshard

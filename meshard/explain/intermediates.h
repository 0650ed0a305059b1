// Intermediate values of a program, with the shardings chosen by propagation.
#pragma once
#include <vector>

#include "meshard/explain/program_facts.h"
#include "meshard/explain/value_placement.h"
#include "meshard/hlo/module.h"

namespace meshard {

/// The values produced by named instructions, each name once. Values that the user marked come
/// first, then the others, largest first. For a recorded program, values are graph nodes named by
/// op, with the source line; otherwise they have the module's op names.
/// @param propagated the module after sharding propagation
std::vector<ValuePlacement> find_intermediates(const HloModule& propagated,
                                               const ProgramFacts& facts);

/// The tensor type of an instruction's result; none for tuples and unknown element types.
std::optional<TensorType> tensor_type_of(const HloShape& shape);

}  // namespace meshard

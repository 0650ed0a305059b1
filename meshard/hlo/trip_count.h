// Trip counts of loops of a compiled module.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/hlo/calls.h"

namespace meshard {

/// The number of iterations of a `while` each time it executes; none if unknown or infinite. Uses
/// the compiler's `known_trip_count` from the backend config if present (CPU and GPU compilers
/// write it). Otherwise the condition must compare a counter with a loop-invariant value, the body
/// must add a constant to the counter, and the counter's initial value must be constant; constants
/// are traced through tuples, copies, fusions, calls and enclosing loops.
std::optional<std::int64_t> trip_count(const ModuleIndex& module, const Calls& calls,
                                       const InstructionIndex& computation,
                                       const HloInstruction& loop);

}  // namespace meshard

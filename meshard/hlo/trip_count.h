// How often a loop of a compiled module runs.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/hlo/calls.h"

namespace meshard {

/// How often the body of a `while` runs, each time that the loop is reached. The compiler's own
/// word is taken if there is one (`known_trip_count` of the backend config, which CPU and GPU
/// compilers write). Else the condition must compare a counter with a value that the loop does not
/// change, the body must add a constant to the counter, and the counter must begin with a constant;
/// the constants may come through tuples, copies, fusions, calls and enclosing loops.
/// None if that is not so, or the loop would not end.
std::optional<std::int64_t> trip_count(const ModuleIndex& module, const Calls& calls,
                                       const InstructionIndex& computation,
                                       const pjrt::HloInstruction& loop);

}  // namespace meshard

// How often the loops of a module run.
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "meshard/stablehlo/module.h"

namespace meshard {

/// The integer constants of a module of which every element is the same, by variable.
using ModuleConstants = std::unordered_map<int, std::int64_t>;
ModuleConstants constants_of(const stablehlo::Module& module);

/// The number of iterations of a `stablehlo.while` that counts from a constant to a constant by
/// constant steps; none for any other loop. A constant may be defined outside of the loop, and
/// carried unchanged.
std::optional<std::int64_t> trips_of(const stablehlo::ModuleOp& loop,
                                     const ModuleConstants& constants);

}  // namespace meshard

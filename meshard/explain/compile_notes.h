// Notes about what a compiled program says of itself.
#pragma once
#include <string>
#include <vector>

#include "meshard/explain/collectives/collective.h"
#include "meshard/hlo/module_index.h"

namespace meshard {

/// A note if no instruction has a source line: where collectives come from is then only shown by
/// the names of ops. It says how to get the lines.
std::vector<std::string> notes_on_lines(const HloModule& module,
                                        const std::vector<Collective>& collectives);

/// A note if the program has custom calls of these targets, for which the compiler's process has no
/// handler.
std::vector<std::string> notes_on_missing_handlers(const HloModule& module,
                                                   const std::vector<std::string>& targets);

/// A note if collectives move 16-bit floats as f32, to which the CPU compiler widens them: their
/// operands are conversions from 16-bit floats, or XLA widened their sums.
std::vector<std::string> notes_on_widening(const ModuleIndex& index,
                                           const std::vector<Collective>& collectives);

}  // namespace meshard

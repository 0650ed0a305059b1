// Loads programs over devices of several processes that the plugin connects (GPU, TPU).
#pragma once
#include <memory>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/graph/evaluator.h"
#include "meshard/lowering/lower.h"
#include "meshard/runtime/internal/process_steps.h"
#include "meshard/runtime/loaded_program.h"
#include "meshard/runtime/platforms.h"

namespace meshard {

/// Loads a program over devices that are not all of this process. Its processes first check that
/// all of them are about to run the same program, and then each compiles it for all its devices:
/// the plugin partitions it and runs the part of this process. Nothing is loaded from disk, because
/// plugins exchange data while they compile. A process that has none of the devices waits until the
/// others have compiled the program, and learns the shardings of the results.
/// @param devices the device assignment
/// @error those of agree() and of the compiler
Result<std::shared_ptr<const LoadedProgram>> load_together(
    const Platforms& platforms, ProcessSteps& steps, const Program& program, LoweredModule lowered,
    const std::vector<int>& devices, SourceLocation where);

/// Tells the processes that have none of the program's devices which shardings it has.
/// @pre all its devices are of this process
/// @error the store's
Result<void> announce_shardings(ProcessSteps& steps, const LoweredModule& lowered,
                                const ChosenShardings& chosen);

}  // namespace meshard

// Loads programs over devices of several processes.
#pragma once
#include <memory>
#include <string>

#include "meshard/base/fingerprint.h"
#include "meshard/base/result.h"
#include "meshard/graph/evaluator.h"
#include "meshard/lowering/lower.h"
#include "meshard/runtime/disk_cache.h"
#include "meshard/runtime/internal/across_processes.h"
#include "meshard/runtime/loaded_program.h"
#include "meshard/runtime/platforms.h"

namespace meshard {

/// Loads the part of this process in a program over devices of several processes. The processes of
/// the program's mesh first check that all of them are about to run the same program. The lowest
/// one partitions it, and each compiles what its devices run. A process that has no device of the
/// mesh only learns the shardings of the results.
///
/// Each process keeps its part on `disk` if compiling it took long, and loads it from there. All
/// these processes load the same programs in the same order.
/// @param program what `lowered` was made from, for messages
/// @error those of agree(), of the partitioner and the compiler
Result<std::shared_ptr<const LoadedProgram>> load_across(
    const Platforms& platforms, AcrossProcesses& across, const DiskCache& disk,
    const Program& program, LoweredModule lowered, SourceLocation where);

/// Equal for equal programs on the same devices.
Fingerprint program_fingerprint(const LoweredModule& lowered);

/// The text of a program with the user's source line after each op, for Intention::details.
std::string text_with_sources(const LoweredModule& lowered, const Graph& graph);

/// `run "train" at train.cc:42`, for Intention::what.
std::string intention_text(const LoweredModule& lowered, SourceLocation where);

/// The shardings of a program over one device, which is in another process.
ChosenShardings shardings_on_one_device(const LoweredModule& lowered);

/// The name under which processes without a device of a program's mesh find what its compiler
/// chose.
std::string announced_name(const AcrossProcesses& across, const LoweredModule& lowered);

/// Tells them the shardings of a program that was loaded on several devices of this process, or the
/// error. They wait for it in load_across().
/// @error the store's; that of reading the compiled module
Result<void> announce_program(AcrossProcesses& across, const std::string& name,
                              const Result<std::shared_ptr<const LoadedProgram>>& loaded);

}  // namespace meshard

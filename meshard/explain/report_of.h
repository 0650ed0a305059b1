// Makes the report of explain() from the compiler's output.
#pragma once
#include <string>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/explain/collectives/collective.h"
#include "meshard/explain/explain.h"
#include "meshard/explain/program_facts.h"
#include "meshard/explain/report.h"
#include "meshard/hlo/module.h"
#include "meshard/runtime/chosen_shardings.h"
#include "meshard/target/compile_for.h"

namespace meshard {

/// Value type: a program, and what its compiler made of it.
struct CompiledModule {
  ProgramFacts facts;
  Result<Compiled> compiled = Compiled();
};

/// Compiles a module for a target, as explain_module() does.
/// @error the errors of explain_module() that do not come from the compiler
Result<CompiledModule> compile_module(std::string_view module, const Target& target,
                                      const ExplainForOptions& options = {});

/// The report on a compiled program.
/// @param chosen the shardings of arguments and results if already known; null: they are read from
/// the compiled module
/// @error data loss: the compiled module cannot be parsed
Result<ProgramReport> report_of(const Compiled& compiled, const ProgramFacts& facts,
                                const ChosenShardings* chosen = nullptr);

/// The report on a program that was compiled, or refused for lack of memory.
/// @error the compiler's; data loss: the compiled module cannot be parsed
Result<ProgramReport> report_of(const CompiledModule& module);

/// The report on a program that the compiler refused for lack of memory. It has the arguments'
/// shardings, the memory they need, and the compiler's numbers.
ProgramReport report_of_refused(const Error& error, const ProgramFacts& facts);

/// The placement of an argument or result in the compiled program. `asked` is the requested type
/// and sharding, `shape` the shard's shape and `compiled` the sharding in the compiled program, if
/// known.
/// @post a sharding that does not give these shards is omitted, with an entry in `notes`
ValuePlacement placement_of(const LoweredValue& asked, const HloShape* shape,
                            const HloSharding* compiled, const LoweredModule& program,
                            std::string name, std::vector<std::string>& notes);

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

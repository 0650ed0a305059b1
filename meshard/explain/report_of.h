// From what a compiler gave to what explain() answers.
#pragma once
#include <optional>

#include "meshard/base/result.h"
#include "meshard/explain/program_facts.h"
#include "meshard/explain/report.h"
#include "meshard/runtime/read_back.h"
#include "meshard/target/compiled.h"

namespace meshard {

/// The report of a compiled program.
/// @param chosen the shardings of its arguments and results if they have been read already; else
/// they are read from the compiled module
/// @error data loss: the compiled module cannot be read
Result<ProgramReport> report_of(const Compiled& compiled, const ProgramFacts& facts,
                                const ChosenShardings* chosen = nullptr);

/// The report of a program that the compiler refused for lack of memory: how its arguments lie,
/// what they need, and the compiler's own numbers.
ProgramReport report_of_refused(const Error& error, const ProgramFacts& facts);

/// The placement of a value that is `asked` for and that the compiled program takes in shards of
/// `shape` with `compiled`'s sharding, as far as each is known.
/// @post a sharding that does not give these shards is left out, and `notes` says so
ValuePlacement placement_of(const LoweredValue& asked, const pjrt::HloShape* shape,
                            const pjrt::OpSharding* compiled, const LoweredModule& program,
                            std::string name, std::vector<std::string>& notes);

}  // namespace meshard

// explain: reports what the compiler made of a program, and why it communicates.
#pragma once
#include <memory>
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/explain/cost/link_options.h"
#include "meshard/explain/report.h"
#include "meshard/graph/evaluator.h"
#include "meshard/trace/jit.h"

namespace meshard {

/// Reports on a compiled program. Nothing is compiled, run or stored; a program that is not
/// explained has no overhead.
/// @error the plugin's error if it does not provide its compiled module; data loss if that cannot
/// be parsed.
ProgramReport explain(const CompiledProgram& program,
                      SourceLocation where = SourceLocation::current());

/// The same, with figures of links: collectives are priced by them, and the report has a lower
/// bound for the time of communication. In a run of several processes, also without `links`, the
/// report shows which mesh axes and collectives cross processes.
/// @error also: invalid argument if `links.processes` is set (the processes are those of the run),
/// or a link between processes is given and there is only one
ProgramReport explain(const CompiledProgram& program, const LinkOptions& links,
                      SourceLocation where = SourceLocation::current());

/// Reports on the newest program of a jitted function: that of the latest new signature.
///
/// ```
/// auto step = jit([](Tensor w, Tensor x) { return matmul(x, w); });
/// step(w, x);
/// std::cout << explain(step).to_string();
/// ```
/// @error failed precondition if nothing is compiled yet: call the function first. Else as above.
template <class F>
ProgramReport explain(const Jit<F>& function, const LinkOptions& links,
                      SourceLocation where = SourceLocation::current()) {
  std::vector<std::shared_ptr<CompiledProgram>> programs = function.programs();
  if (programs.empty())
    throw Error(ErrorCode::kFailedPrecondition,
                "[explain] the function has no compiled program yet: call it first", where);
  return explain(*programs.back(), links, where);
}
template <class F>
ProgramReport explain(const Jit<F>& function, SourceLocation where = SourceLocation::current()) {
  return explain(function, LinkOptions{}, where);
}

}  // namespace meshard

// explain: reports what the compiler made of a program, here or on absent hardware.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/explain/cost/custom_call_use.h"
#include "meshard/explain/module_layout.h"
#include "meshard/explain/process_map.h"
#include "meshard/explain/report.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/evaluator.h"
#include "meshard/target/compile_for.h"
#include "meshard/trace/argument_list.h"
#include "meshard/trace/jit.h"

namespace meshard {

/// Reports on a compiled program. Nothing is compiled, run or stored; a program that is not
/// explained has no overhead. In a run of several processes, the report shows which mesh axes and
/// collectives cross processes.
/// @param links figures of links: collectives are priced by them, and the report has a lower bound
/// for the time of communication. Default: none
/// @error the plugin's error if it does not provide its compiled module; data loss if that cannot
/// be parsed; invalid argument if `links.processes` is set (the processes of the run are used), or
/// a link between processes is given and there is only one.
ProgramReport explain(const CompiledProgram& program, const LinkOptions& links = {},
                      SourceLocation where = SourceLocation::current());

/// Reports on the newest program of a jitted function: that of the latest new signature.
///
/// ```
/// auto step = jit([](Tensor w, Tensor x) { return matmul(x, w); });
/// step(w, x);
/// std::cout << explain(step).to_string();
/// ```
/// @error failed precondition if nothing is compiled yet: call the function first; the errors of
/// explain() of a CompiledProgram
template <class F>
ProgramReport explain(const Jit<F>& function, const LinkOptions& links = {},
                      SourceLocation where = SourceLocation::current()) {
  std::vector<std::shared_ptr<CompiledProgram>> programs = function.programs();
  if (programs.empty())
    throw Error(ErrorCode::kFailedPrecondition,
                "[explain] the function has no compiled program yet: call it first", where);
  return explain(*programs.back(), links, where);
}

/// Options of explain() for a target.
struct ExplainForOptions {
  /// The name and the donated arguments of a function. A jitted function uses its own options
  /// instead.
  JitOptions jit = {};
  /// Of a module.
  ModuleLayout layout = {};
  /// The function that runs the program, in a module as text. Empty: `main`, or the only public
  /// function.
  std::string entry = {};
  /// The partitioner of a module, Shardy or GSPMD. None: Shardy unless the module has only
  /// `mhlo.sharding`.
  std::optional<bool> use_shardy = std::nullopt;
  /// Compiler options, by their names in XLA's DebugOptions.
  std::map<std::string, pjrt::CompileOptions::Override> overrides = {};
  /// The processes that the target's devices belong to, and the links between them.
  LinkOptions links = {};
  /// Costs of custom calls, for which the module does not say enough.
  std::vector<GivenCost> costs = {};
  /// A trace of runs of the program, whose times the report shows: see read_trace_ops(). The path
  /// of a file; empty: none.
  std::string measured = {};
  CompileForOptions compile = {};
};

/// Compiles a StableHLO module for a target and reports on it. The module may be text, MLIR
/// bytecode or a portable artifact, as written by MLIR, JAX and PyTorch. If the compiler refuses
/// the program for lack of memory, there is still a report, whose fits() is false.
/// @error data loss: the module cannot be parsed; unimplemented: it has ops of dialects that the
/// compiler does not support; invalid argument: it is HLO, has no entry or nothing to run, or is
/// for another number of devices than the target has, a cost is given for a custom call that the
/// program lacks, or the trace is of another program; data loss also: the trace cannot be parsed;
/// the errors of compile_for().
ProgramReport explain_module(std::string_view module, const Target& target,
                             const ExplainForOptions& options = {},
                             SourceLocation where = SourceLocation::current());

/// Value type: a function that was traced for some arguments, and not compiled: see
/// trace_program().
struct TracedProgram {
  Program program;
  SourceLocation where;
};

namespace internal {

/// explain_module(), for callers for whom a module that does not compile is a result.
Result<ProgramReport> report_of_module(std::string_view module, const Target& target,
                                       const ExplainForOptions& options);

ProgramReport explain_traced(const Target& target, TracedProgram traced,
                             const ExplainForOptions& options);

std::string module_text_of(const TracedProgram& traced);

template <class T>
inline constexpr bool kIsJit = false;
template <class F>
inline constexpr bool kIsJit<Jit<F>> = true;

template <class F, class... Arguments>
TracedProgram trace_for(const F& function, ExplainForOptions& options, SourceLocation where,
                        const Arguments&... arguments) {
  if constexpr (kIsJit<F>) options.jit = function.options();
  std::vector<Tensor> tensors = tensors_of(arguments...);
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined())
      throw_invalid(where,
                    "[explain] an argument has no value: it was default-constructed or moved from");
    pointers.push_back(&tensor);
  }
  TracedProgram traced;
  traced.where = where;
  traced.program.name = options.jit.name;
  traced.program.graph = trace_function(
      pointers,
      [&](std::span<const Tensor> parameters) {
        return call_with(parameters, function, arguments...);
      },
      where);
  traced.program.donated =
      donated_parameters(options.jit.donate, {count_leaves(arguments)...}, where);
  [[maybe_unused]] std::size_t position = 0;
  (append_paths(arguments, position++, traced.program.parameter_names), ...);
  return traced;
}

}  // namespace internal

/// Reports what the compiler makes of a function on absent hardware, for these arguments. Nothing
/// runs and no data is moved: only the types and shardings of the arguments matter, so they may be
/// abstract. A jitted function contributes its name and donated arguments.
///
/// ```
/// Target pod = Target::parse("v5e:16x16").value();
/// Mesh mesh = torus_mesh(pod.topology(), {16, 16}, {{"data", "model"}});
/// Tensor x = abstract_tensor({4096, 8192}, DType::bf16, mesh, P("data", none));
/// Tensor w = abstract_tensor({8192, 8192}, DType::bf16, mesh, P(none, "model"));
/// ProgramReport report = explain(pod, layer, x, w);
/// ```
/// @error an argument's mesh has a device that the target lacks; errors thrown by the function; the
/// errors of compile_for(). A program that does not fit into memory still has a report.
template <class F, class... Arguments>
requires std::is_invocable_v < const F&, const internal::Traced<Arguments>
&... >
    ProgramReport explain(const Target& target, const F& function, const Arguments&... arguments) {
  ExplainForOptions options;
  TracedProgram traced = internal::trace_for(function, options, SourceLocation{}, arguments...);
  return internal::explain_traced(target, std::move(traced), options);
}

/// The same, with options for the compile.
template <class F, class... Arguments>
requires std::is_invocable_v < const F&, const internal::Traced<Arguments>
&... > ProgramReport explain(const Target& target, ExplainForOptions options, const F& function,
                             const Arguments&... arguments) {
  TracedProgram traced = internal::trace_for(function, options, SourceLocation{}, arguments...);
  return internal::explain_traced(target, std::move(traced), options);
}

/// Traces a function for these arguments, as explain() does. Nothing is compiled; only the types
/// and shardings of the arguments matter. predict(traced.program.graph) says what is expected to
/// move.
/// @error errors thrown by the function
template <class F, class... Arguments>
requires std::is_invocable_v < const F&, const internal::Traced<Arguments>
&... > TracedProgram trace_program(const F& function, const Arguments&... arguments) {
  ExplainForOptions options;
  return internal::trace_for(function, options, SourceLocation{}, arguments...);
}

/// Reports what the compiler makes of a traced function on absent hardware.
/// @param options of the compile; those of jit() are the traced function's own
/// @error as explain() of a function
inline ProgramReport explain(const Target& target, TracedProgram traced,
                             const ExplainForOptions& options = {}) {
  return internal::explain_traced(target, std::move(traced), options);
}

/// The StableHLO module that explain() compiles for a function and these arguments. Save it to a
/// file for `meshard explain` and `meshard plan`.
/// @error errors thrown by the function
template <class F, class... Arguments>
requires std::is_invocable_v < const F&, const internal::Traced<Arguments>
&... > std::string module_text(const F& function, const Arguments&... arguments) {
  ExplainForOptions options;
  return internal::module_text_of(
      internal::trace_for(function, options, SourceLocation{}, arguments...));
}

}  // namespace meshard

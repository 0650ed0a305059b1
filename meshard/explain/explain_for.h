// explain() for hardware that is not here: of a function of this program, and of any module file.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "meshard/explain/program_facts.h"
#include "meshard/explain/report.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/lowering/lower.h"
#include "meshard/target/compile_for.h"
#include "meshard/trace/argument_list.h"

namespace meshard {

/// How a program is compiled for absent hardware.
struct ExplainForOptions {
  /// Name and donated arguments. Those of a jitted function are its own.
  JitOptions jit = {};
  /// Options of the compiler by XLA's DebugOptions names.
  std::map<std::string, pjrt::CompileOptions::Override> overrides = {};
  CompileForOptions compile = {};
};

struct ExplainModuleOptions {
  ModuleLayout layout = {};
  /// Shardy, or the older partitioner. None: Shardy unless the module has only `mhlo.sharding`.
  std::optional<bool> use_shardy = std::nullopt;
  std::map<std::string, pjrt::CompileOptions::Override> overrides = {};
  CompileForOptions compile = {};
};

/// Compiles a StableHLO module (text, MLIR bytecode or portable artifact, as MLIR, JAX and PyTorch
/// write them) for a target and tells what became of it. A program that the compiler refuses for
/// lack of memory has a report too, whose fits() is false.
/// @error data loss: the module cannot be read; invalid argument: it is for another number of
/// devices than the target has; what compile_for() answers.
Result<ProgramReport> explain_module(std::string_view module, const Target& target,
                                     const ExplainModuleOptions& options = {});

namespace internal {

/// A traced function on its way to a target.
struct TracedProgram {
  Program program;
  SourceLocation where;
};
ProgramReport explain_traced(const Target& target, TracedProgram traced,
                             const ExplainForOptions& options);

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
      throw_invalid(where, "[explain] an argument has no value: it was default-made or moved from");
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

/// What a function becomes on hardware that is not here, for these arguments. Nothing runs and
/// nothing is moved: only types and shardings of the arguments count, so that they may be abstract.
/// The function may be a jitted one, whose name and donated arguments are used.
///
/// ```
/// Target pod = Target::parse("v5e:16x16").value();
/// Mesh mesh = torus_mesh(pod.topology(), {16, 16}, {{"data", "model"}});
/// Tensor x = abstract_tensor({4096, 8192}, DType::bf16, mesh, P("data", none));
/// Tensor w = abstract_tensor({8192, 8192}, DType::bf16, mesh, P(none, "model"));
/// ProgramReport report = explain(pod, layer, x, w);
/// ```
/// @error an argument's mesh has a device that the target lacks; what the function throws; what
/// compile_for() answers. A program that does not fit into memory has a report.
template <class F, class... Arguments>
requires std::is_invocable_v < const F&, const internal::Traced<Arguments>
&... >
    ProgramReport explain(const Target& target, const F& function, const Arguments&... arguments) {
  ExplainForOptions options;
  internal::TracedProgram traced =
      internal::trace_for(function, options, SourceLocation{}, arguments...);
  return internal::explain_traced(target, std::move(traced), options);
}

/// With options for the compile.
template <class F, class... Arguments>
requires std::is_invocable_v < const F&, const internal::Traced<Arguments>
&... > ProgramReport explain(const Target& target, ExplainForOptions options, const F& function,
                             const Arguments&... arguments) {
  internal::TracedProgram traced =
      internal::trace_for(function, options, SourceLocation{}, arguments...);
  return internal::explain_traced(target, std::move(traced), options);
}

/// The StableHLO module that explain() compiles for a function and these arguments: to keep in a
/// file, for `meshard explain` and `meshard plan`.
/// @error what the function throws
template <class F, class... Arguments>
requires std::is_invocable_v < const F&, const internal::Traced<Arguments>
&... > std::string module_text(const F& function, const Arguments&... arguments) {
  ExplainForOptions options;
  return lower(internal::trace_for(function, options, SourceLocation{}, arguments...).program).text;
}

}  // namespace meshard

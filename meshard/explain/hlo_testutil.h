// Compiled modules for tests, either handwritten (meshard/hlo/hlo_testutil.h) or compiled by the
// machine's CPU plugin.
#pragma once
#include <string>

#include "meshard/explain/collectives/collectives.h"
#include "meshard/hlo/executions.h"
#include "meshard/hlo/hlo_testutil.h"
#include "meshard/hlo/module.h"
#include "meshard/pjrt/client.h"
#include "meshard/pjrt/loaded_executable.h"
#include "meshard/pjrt/plugin_search.h"
#include "meshard/runtime/runtime.h"

namespace meshard {

/// Why real programs cannot be compiled here; empty if they can.
inline std::string why_no_plugin() {
  Result<std::string> path = pjrt::find_plugins().first("cpu");
  return path.ok() ? "" : path.error().message();
}

/// Compiles a module for 8 devices and reads it back.
inline HloModule compile_module(const std::string& text) {
  pjrt::CompileOptions options;
  options.num_partitions = 8;
  pjrt::LoadedExecutable executable = runtime_client().compile(text, options).value();
  return HloModule::from_bytes(executable.executable().optimized_program().value()).value();
}

/// The collectives of a module whose executions are not needed otherwise.
inline Result<std::vector<Collective>> find_collectives(const HloModule& module,
                                                        const std::optional<Mesh>& mesh,
                                                        const Graph* graph) {
  ModuleIndex index(module);
  MESHARD_ASSIGN_OR_RETURN(Executions executions, Executions::of(index));
  return find_collectives(executions, mesh, graph);
}

}  // namespace meshard

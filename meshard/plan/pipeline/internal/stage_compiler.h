// Compiles the programs of stages ahead of time, each distinct one once.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "meshard/explain/explain_for.h"
#include "meshard/plan/pipeline/explain_pipeline.h"

namespace meshard::internal {

/// A program, and its results without values, in the shardings that the compiler has chosen.
struct CompiledStageProgram {
  std::shared_ptr<const ProgramReport> report;
  std::vector<Tensor> results;
};

/// Not thread-safe.
class StageCompiler {
 public:
  /// @param options those of the compile are used
  StageCompiler(Target target, const ExplainPipelineOptions& options);

  /// @error invalid argument: the mesh has a device that the target lacks; the errors of explain()
  template <class F, class... Arguments>
  CompiledStageProgram compile(const F& jitted, const Mesh& mesh, SourceLocation where,
                               const Arguments&... arguments) {
    ExplainForOptions options;
    return compile_traced(trace_for(jitted, options, where, arguments...), mesh);
  }

  /// How many programs were compiled.
  int compiled() const { return compiled_; }

 private:
  CompiledStageProgram compile_traced(TracedProgram traced, const Mesh& mesh);
  // Equal for submeshes that differ only in their place.
  std::string form_of(const Mesh& mesh) const;

  Target target_;
  ExplainForOptions options_;
  std::map<std::string, std::shared_ptr<const ProgramReport>> reports_;
  int compiled_ = 0;
};

}  // namespace meshard::internal

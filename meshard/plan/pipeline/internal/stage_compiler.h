// The programs of stages compiled ahead of time, each distinct one once, and the memory that they
// need together.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meshard/explain/cost/link_use.h"
#include "meshard/explain/explain.h"
#include "meshard/graph/tensor.h"
#include "meshard/mesh/mesh.h"
#include "meshard/plan/pipeline/explain_pipeline.h"
#include "meshard/target/target.h"

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

/// The links that a transfer between two submeshes loads, as a permutation in which each device of
/// one sends
/// to its counterpart of the other. If one has more devices, each device of the other sends or
/// receives for several.
class StageLink {
 public:
  StageLink(const Target& target, const Mesh& from, const Mesh& to, const LinkOptions& options);

  /// The bytes that one device sends, for receivers of `received` bytes each.
  std::int64_t device_bytes(std::int64_t received) const;
  /// A lower bound for a device that sends so many bytes; 0 if the hardware's figures are unknown,
  /// or the submeshes are the same.
  double seconds(std::int64_t device_bytes) const;

 private:
  std::int64_t receivers_ = 1;  // of each sender
  std::optional<LinkModel> links_;
};

/// The bytes of the largest shard of each tensor on one device, together.
std::int64_t device_bytes(const std::vector<Tensor>& tensors);

/// Value type: what one device of a stage needs, in bytes.
struct StageNeeds {
  /// Parameters, gradients and optimizer state.
  std::int64_t always = 0;
  /// The memory that a microbatch keeps after its forward, and after its input gradient.
  std::int64_t after_forward = 0, after_input_gradient = 0;
  /// What comes from the previous stage and from the next one for a microbatch. It waits in memory
  /// until it is used.
  std::int64_t received_forward = 0, received_backward = 0;
  /// The temporary memory of the largest program, except the update.
  std::int64_t program = 0;
  /// The new values of an update, which last until the updates of all stages are done; and what its
  /// program needs while it runs.
  std::int64_t update_results = 0, update_program = 0;
};

/// Sets `activations` and `total` of the stages' memory. Stages that share a device share its
/// memory; their programs run one after the other.
void set_peaks(const PipelineTimeline& timeline, const std::vector<StageNeeds>& needs,
               std::vector<PipelineStageReport>& stages);

}  // namespace meshard::internal

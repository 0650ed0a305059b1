// explain for pipelines: step time, waiting, memory and transfers of stages on absent hardware.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "meshard/explain/process_map.h"
#include "meshard/pipeline/pipeline.h"
#include "meshard/plan/pipeline/pipeline_report.h"
#include "meshard/target/compile_for.h"
#include "meshard/target/target.h"

namespace meshard {

/// Options of explain_pipeline().
struct ExplainPipelineOptions {
  /// Optimizer and limit for the norm, as the Pipeline has them.
  PipelineOptions pipeline = {};
  /// Measured times in seconds, one for each stage or one for all, in place of the estimates. A
  /// transfer whose time is 0 keeps its estimate. Default: none.
  std::vector<StageTimes> times = {};
  /// Bytes of one device. None: the published figure of the target.
  std::optional<std::int64_t> memory = std::nullopt;
  /// Compiler options, by their names in XLA's DebugOptions.
  std::map<std::string, pjrt::CompileOptions::Override> overrides = {};
  /// The processes that the target's devices belong to, and the links between them.
  LinkOptions links = {};
  CompileForOptions compile = {};
};

namespace internal {
class StageCompiler;
PipelineReport explained(const Target& target, const std::vector<PipelineStage>& stages,
                         const PipelineSchedule& schedule, const AnyStructure& microbatch,
                         const ExplainPipelineOptions& options, StageCompiler* compiler,
                         SourceLocation where);
}  // namespace internal

/// Reports how a pipeline would run on a target, without its devices: the programs of each stage
/// are compiled ahead of time for the stage's submesh, and their estimated times (explain()) are
/// those of the schedule's actions. Nothing runs and no data is moved: only the types and shardings
/// of parameters and microbatch matter, so they may be abstract.
///
/// Each transfer uses the links alone, and goes from each device to its counterpart on the other
/// submesh at the published rates. The norm of the gradients and sums of tied gradients take no
/// time.
///
/// @code
/// Target target = Target::parse("cpu:8").value();
/// Mesh mesh({{"stage", 2}, {"x", 4}});
/// std::vector<PipelineStage> stages{
///     {*mesh.submesh({"x"}, 0), abstract_tensor({64, 64}, DType::f32),
///      [](const Tensor& w, const Tensor& x) { return matmul(x, w); }},
///     {*mesh.submesh({"x"}, 4), abstract_tensor({64, 64}, DType::f32),
///      [](const Tensor& w, const Tensor& h, const Tensor&) { return mean(matmul(h, w)); }}};
/// PipelineReport report = explain_pipeline(target, stages, one_forward_one_backward(2, 8),
///                                          abstract_tensor({32, 64}, DType::f32));
/// std::cout << report.stages()[0].memory.parameters << "\n";
/// @endcode
/// prints `16384`.
///
/// @param stages on submeshes of the target's devices
/// @param microbatch the input of the first stage for one microbatch
/// @error invalid argument: another number of stages than the schedule's, or of times; a stage's
/// mesh has a device that the target lacks; errors of the stages' functions; the errors of
/// compile_for(). A stage that does not fit into memory still has a report.
template <class Batch>
PipelineReport explain_pipeline(const Target& target, const std::vector<PipelineStage>& stages,
                                const PipelineSchedule& schedule, const Batch& microbatch,
                                const ExplainPipelineOptions& options = {},
                                SourceLocation where = SourceLocation::current()) {
  return internal::explained(target, stages, schedule, internal::AnyStructure::of(microbatch),
                             options, nullptr, where);
}

}  // namespace meshard

// plan for pipelines: divides layers into stages, and chooses schedule, microbatches and submeshes.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meshard/base/enum_names.h"
#include "meshard/base/source_location.h"
#include "meshard/pipeline/stage.h"
#include "meshard/plan/pipeline/explain_pipeline.h"

namespace meshard {

/// A model of which any range of layers can be a stage.
struct PipelineLayers {
  int count = 0;
  /// Makes the stage of the layers in [begin, end), with its parameters, on a mesh. The stage with
  /// layer 0 is a function of (parameters, batch), others of (parameters, what the previous stage
  /// returned, batch); the stage with the last layer returns the loss.
  std::function<PipelineStage(int begin, int end, const Mesh& mesh)> stage;
};

/// The layers of a model whose layers have parameters of one type, and pass on values of one type.
///
/// @code
/// std::vector<Tensor> weights(6, ones({8, 8}) * 0.1f);
/// PipelineLayers model = pipeline_layers(
///     weights, [](const Tensor& x) { return x; },
///     [](const Tensor& w, const Tensor& h) { return tanh(matmul(h, w)); },
///     [](const Tensor& h, const Tensor& x) { return mean(square(h - x)); });
/// Mesh mesh({{"stage", 2}, {"x", 4}});
/// Pipeline pipeline({model.stage(0, 3, *mesh.submesh({"x"}, 0)),
///                    model.stage(3, 6, *mesh.submesh({"x"}, 4))},
///                   one_forward_one_backward(2, 2), {.optimizer = optim::Sgd{.rate = 0.1}});
/// std::cout << (pipeline.step(std::vector<Tensor>(2, ones({4, 8}))).item<float>() > 0) << "\n";
/// @endcode
/// prints `1`.
///
/// @param layers the parameters of each layer. A stage has the vector of its layers' parameters.
/// @param enter of (batch): what the first layer gets
/// @param apply of (parameters of a layer, value): what it passes on, of the same type as the value
/// @param loss of (value of the last layer, batch), a float of rank 0. States its argument types.
template <class Params, class Enter, class Apply, class Loss>
PipelineLayers pipeline_layers(std::vector<Params> layers, Enter enter, Apply apply, Loss loss,
                               PipelineStageOptions options = {},
                               SourceLocation where = SourceLocation::current()) {
  static_assert(internal::HasStageSignature<Loss>,
                "the loss states its argument types: [](const Hidden&, const Batch&)");
  using Arguments = typename internal::StageSignature<Loss>::Arguments;
  using Hidden = std::tuple_element_t<0, Arguments>;
  using Batch = std::tuple_element_t<1, Arguments>;
  using Stage = std::vector<Params>;
  auto count = static_cast<int>(layers.size());
  auto run = [apply](const Stage& own, Hidden value) {
    for (const Params& one : own) value = apply(one, value);
    return value;
  };
  return {count, [=](int begin, int end, const Mesh& mesh) {
            Stage own(layers.begin() + begin, layers.begin() + end);
            const auto made = [&](auto f) { return PipelineStage(mesh, own, f, options, where); };
            if (begin == 0 && end == count)
              return made([=](const Stage& given, const Batch& batch) {
                return loss(run(given, enter(batch)), batch);
              });
            if (begin == 0)
              return made(
                  [=](const Stage& given, const Batch& batch) { return run(given, enter(batch)); });
            if (end == count)
              return made([=](const Stage& given, const Hidden& value, const Batch& batch) {
                return loss(run(given, value), batch);
              });
            return made([=](const Stage& given, const Hidden& value, const Batch&) {
              return run(given, value);
            });
          }};
}

/// The standard schedules. Interleaved 1F1B is kOneForwardOneBackward with several chunks.
enum class PipelineScheduleKind { kGpipe, kOneForwardOneBackward, kZeroBubble };

template <>
struct EnumNames<PipelineScheduleKind> {
  static constexpr EnumName<PipelineScheduleKind> kNames[] = {
      {PipelineScheduleKind::kGpipe, "GPipe"},
      {PipelineScheduleKind::kOneForwardOneBackward, "1F1B"},
      {PipelineScheduleKind::kZeroBubble, "ZB-H1"},
  };
};

/// Value type: one way to run a model as a pipeline.
struct PipelineCandidate {
  PipelineScheduleKind schedule = PipelineScheduleKind::kOneForwardOneBackward;
  int workers = 1;
  /// Stages of each worker: worker w has the stages w, w + workers, ... More than one only for
  /// 1F1B.
  int chunks = 1;
  int microbatches = 1;
  /// The axes of each worker's submesh.
  std::vector<MeshAxis> axes = {};
  /// The number of layers of each stage, for workers * chunks stages.
  std::vector<int> layers = {};

  MESHARD_FIELDS(schedule, workers, chunks, microbatches, axes, layers)
  int stages() const { return workers * chunks; }
  /// `1F1B, 4 workers of data=2,model=2, 8 microbatches, layers 3,3,3,3`
  std::string to_string() const;
  friend bool operator==(const PipelineCandidate&, const PipelineCandidate&) = default;
};

/// The candidate's schedule. @error errors of the standard schedules
PipelineSchedule schedule_of(const PipelineCandidate& candidate,
                             SourceLocation where = SourceLocation::current());

/// The candidate's stages on submeshes of the target's devices, which are in the order of its
/// torus. With the same devices in this process, they are what a Pipeline takes.
/// @error invalid argument: the layers are not those of the model, the axes do not have a worker's
/// number of devices, or one is named `stage`
std::vector<PipelineStage> stages_of(const PipelineCandidate& candidate,
                                     const PipelineLayers& layers, const Target& target,
                                     SourceLocation where = SourceLocation::current());

/// Options of plan_pipeline().
struct PlanPipelineOptions {
  /// The names of the axes of a worker's submesh. All shapes are tried. Parameters and batch are
  /// split along the axes of their shardings that have these names.
  std::vector<std::string> axes = {"x"};
  /// Axes with a fixed size. Default: none.
  std::map<std::string, std::int64_t> pinned = {};
  /// Empty: all numbers that divide the target's devices, up to the number of layers.
  std::vector<int> workers = {};
  /// Numbers that do not divide the batch are left out. Empty: as many as workers, two and four
  /// times
  /// as many.
  std::vector<int> microbatches = {};
  /// Stages of a worker, for 1F1B. Default: 1 and 2.
  std::vector<int> chunks = {1, 2};
  std::vector<PipelineScheduleKind> schedules = {PipelineScheduleKind::kGpipe,
                                                 PipelineScheduleKind::kOneForwardOneBackward,
                                                 PipelineScheduleKind::kZeroBubble};
  /// The candidates that are explained, in the order of their estimates, besides the given one.
  std::size_t most = 12;
  /// Then, how often the best candidate is changed by one layer, which moves from the slowest stage
  /// (or the one that fits least) to a neighbor, as long as that helps. 0: the divisions by the
  /// layers' own times only.
  std::size_t moves = 6;
  /// What runs now. It is explained too, and ranked among the others. Default: none.
  std::optional<PipelineCandidate> given = std::nullopt;
  /// How stages are compiled; `times` is not used.
  ExplainPipelineOptions explain = {};
};

/// Value type: a candidate that was explained.
struct PlannedPipeline {
  PipelineCandidate candidate;
  /// True for the given candidate.
  bool as_given = false;
  /// The time of a step expected from the times of the single layers; 0: not known.
  double estimate = 0;
  /// None if the candidate cannot run, as `problem` says.
  std::optional<PipelineReport> report = std::nullopt;
  std::string problem = {};

  MESHARD_FIELDS(candidate, as_given, estimate, report, problem)
  bool fits() const { return report && report->fits(); }
};

/// Value type: the result of plan_pipeline().
struct PipelinePlan {
  /// Best first: candidates that fit, by the time of a step (the given one first if it is as good);
  /// then candidates that do not fit, by the missing memory; then candidates that cannot run.
  std::vector<PlannedPipeline> ranking;
  /// The number of candidates that were considered.
  std::size_t considered = 0;
  /// The number of programs that were compiled.
  int compiled = 0;

  MESHARD_FIELDS(ranking, considered, compiled)
  bool anything_fits() const { return !ranking.empty() && ranking.front().fits(); }
  const PlannedPipeline* given() const;
  /// True if nothing better than the given candidate was found.
  bool given_is_best() const { return anything_fits() && ranking.front().as_given; }
  /// The reasons for the candidate's rank: its time, bubble, slowest stage, memory and transfers.
  /// @pre index < ranking.size()
  std::string reason(std::size_t index) const;
  /// The first `most` of the ranking with their reasons.
  std::string to_string(std::size_t most = 5) const;
};

/// The plan as JSON, with `schema` `meshard.pipeline_plan` and a `version`.
/// @param indent spaces per level; 0: all on one line.
std::string to_json(const PipelinePlan& plan, std::size_t indent = 0);

namespace internal {
PipelinePlan planned(const Target& target, const PipelineLayers& layers, const AnyStructure& batch,
                     const PlanPipelineOptions& options, SourceLocation where);
}  // namespace internal

/// Searches for the way to run a model as a pipeline on all devices of a target. For each number of
/// workers and each shape of their submeshes, the layers are compiled one by one, and divided into
/// stages of equal time (balanced_layers()). The schedules are run with these times, for each
/// number of microbatches. The most promising candidates are then judged by explain_pipeline(),
/// which measures their own programs instead of sums over layers. Equal programs are compiled
/// once.
///
/// @code
/// Target target = Target::parse("cpu:4").value();
/// std::vector<Tensor> weights(4, abstract_tensor({32, 32}, DType::f32));
/// PipelineLayers model = pipeline_layers(
///     weights, [](const Tensor& x) { return x; },
///     [](const Tensor& w, const Tensor& h) { return tanh(matmul(h, w)); },
///     [](const Tensor& h, const Tensor& x) { return mean(square(h - x)); });
/// PipelinePlan plan = plan_pipeline(target, model, abstract_tensor({16, 32}, DType::f32),
///                                   {.workers = {2}, .microbatches = {4}, .chunks = {1}});
/// std::cout << plan.ranking.front().candidate.to_string() << "\n";
/// @endcode
/// prints `ZB-H1, 2 workers of x=2, 4 microbatches, layers 2,2`.
///
/// @param batch the whole batch; microbatches are equal parts of dimension 0 of each of its tensors
/// @error invalid argument: nothing to try, a tensor of the batch without dimensions, or an invalid
/// given candidate; errors of the layers' functions in all candidates
template <class Batch>
PipelinePlan plan_pipeline(const Target& target, const PipelineLayers& layers, const Batch& batch,
                           const PlanPipelineOptions& options = {},
                           SourceLocation where = SourceLocation::current()) {
  return internal::planned(target, layers, internal::AnyStructure::of(batch), options, where);
}

/// Divides layers into `stages` contiguous ranges of at least one layer each, such that the largest
/// cost of a range is as small as possible; and among those, the sum of the squares of the ranges'
/// costs, so that the others are also alike. Dynamic programming over the ends of the ranges:
/// O(stages * layers^2).
///
/// `balanced_layers({3, 1, 1, 1, 4, 2}, 3)` is `3,2,1` for costs 5, 5, 2
/// @return the number of layers of each stage
/// @error invalid argument, thrown: fewer than one stage, or more than layers; a cost that is
/// negative or not finite
std::vector<int> balanced_layers(std::span<const double> costs, int stages,
                                 SourceLocation where = SourceLocation::current());

}  // namespace meshard

#include "meshard/plan/pipeline/plan_pipeline.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "meshard/base/cat.h"
#include "meshard/explain/program_facts.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/pipeline/schedule/standard_schedules.h"
#include "meshard/plan/candidate.h"
#include "meshard/plan/pipeline/balance.h"
#include "meshard/plan/pipeline/internal/stage_compiler.h"

namespace meshard {
namespace {

using internal::AnyStructure;

// The submesh of each worker.
std::vector<Mesh> worker_meshes(int workers, const std::vector<MeshAxis>& axes,
                                const Target& target, SourceLocation where) {
  std::vector<MeshAxis> all{{"stage", workers}};
  std::vector<std::string> names;
  for (const MeshAxis& axis : axes) {
    if (axis.name == "stage")
      throw_invalid(where, "[plan] no axis of a worker's mesh can be named `stage`");
    all.push_back(axis);
    names.push_back(axis.name);
  }
  Result<Mesh> whole = mesh_on_target(all, target, DeviceOrder::kTorus);
  if (!whole.ok()) throw whole.error().at(where);
  DeviceIds ids = whole->device_ids();
  std::int64_t size = whole->size() / workers;
  std::vector<Mesh> meshes;
  for (int w = 0; w < workers; ++w) meshes.push_back(*whole->submesh(names, ids[w * size]));
  return meshes;
}

std::string axes_text_of(const std::vector<MeshAxis>& axes) {
  std::vector<std::string> parts;
  for (const MeshAxis& axis : axes) parts.push_back(cat(axis.name, "=", axis.size));
  return join(parts, ",");
}

class PipelinePlanner {
 public:
  PipelinePlanner(const Target& target, const PipelineLayers& layers, const AnyStructure& batch,
                  const PlanPipelineOptions& options, SourceLocation where)
      : target_(target),
        layers_(layers),
        batch_(batch),
        options_(options),
        where_(where),
        compiler_(target, options.explain) {
    options_.explain.times.clear();
    if (layers.count < 1) throw_invalid(where, "[plan] the model has no layers");
    if (options.axes.empty()) throw_invalid(where, "[plan] the workers' meshes have no axes");
    for (const Tensor& each : batch.tensors)
      if (each.rank() == 0)
        throw_invalid(where, "[plan] a tensor of the batch has no dimension to divide");
  }

  PipelinePlan plan() {
    PipelinePlan made;
    std::vector<PlannedPipeline> all = candidates();
    if (options_.given) {
      std::erase_if(all, [&](const auto& one) { return one.candidate == *options_.given; });
      made.ranking.push_back(explained({.candidate = *options_.given, .as_given = true}));
    }
    if (all.empty() && !options_.given) {
      if (first_error_) throw *first_error_;
      throw_invalid(where_, "[plan] there is no pipeline to try for ", layers_.count,
                    " layers and ", target_.size(), " devices");
    }
    made.considered = all.size() + made.ranking.size();
    for (std::size_t i = 0; i < all.size() && i < options_.most; ++i)
      made.ranking.push_back(explained(std::move(all[i])));
    made.considered += move_layers(made.ranking);
    bool can_any_run = std::any_of(made.ranking.begin(), made.ranking.end(),
                                   [](const auto& one) { return one.report.has_value(); });
    if (!can_any_run && first_error_) throw *first_error_;
    std::stable_sort(made.ranking.begin(), made.ranking.end(), is_better);
    made.compiled = compiler_.compiled();
    return made;
  }

 private:
  // What one layer takes for a microbatch of `of` microbatches.
  struct LayerTimes {
    int of = 1;
    std::vector<StageTimes> layers;
  };

  // Adds variants of the best candidate to the ranking. @return how many
  std::size_t move_layers(std::vector<PlannedPipeline>& ranking) {
    std::size_t added = 0;
    while (added < options_.moves && !ranking.empty()) {
      const PlannedPipeline& best = *std::min_element(ranking.begin(), ranking.end(), is_better);
      if (!best.report) break;
      const std::vector<PipelineStageReport>& stages = best.report->stages();
      auto from = best.report->slowest();
      if (!best.fits())
        from = static_cast<int>(std::max_element(stages.begin(), stages.end(),
                                                 [](const auto& a, const auto& b) {
                                                   return a.memory.total < b.memory.total;
                                                 }) -
                                stages.begin());
      PipelineCandidate moved = best.candidate;
      std::size_t before = added;
      for (int to : {from - 1, from + 1}) {
        if (to < 0 || to >= moved.stages() || added == options_.moves) continue;
        moved.layers = best.candidate.layers;
        if (--moved.layers[static_cast<std::size_t>(from)] < 1) continue;
        ++moved.layers[static_cast<std::size_t>(to)];
        bool is_known = std::any_of(ranking.begin(), ranking.end(),
                                    [&](const auto& one) { return one.candidate == moved; });
        if (is_known) continue;
        ranking.push_back(explained({.candidate = moved}));
        ++added;
        break;  // the best one may be another one now
      }
      if (added == before) break;
    }
    return added;
  }

  static std::int64_t missing(const PlannedPipeline& one) {
    std::int64_t most = 0;
    for (const PipelineStageReport& stage : one.report->stages())
      most = std::max(most, -stage.memory.spare().value_or(0));
    return most;
  }
  static bool is_better(const PlannedPipeline& a, const PlannedPipeline& b) {
    const auto rank = [](const PlannedPipeline& one) {
      return one.fits() ? 0 : one.report ? 1 : 2;
    };
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    if (rank(a) == 2) return false;
    if (rank(a) == 1) return missing(a) < missing(b);
    return a.report->time() < b.report->time();
  }

  AnyStructure microbatch(int count) const {
    std::vector<Tensor> parts;
    for (const Tensor& each : batch_.tensors) {
      TensorType type = each.type();
      Dimensions sizes(type.shape.begin(), type.shape.end());
      sizes[0] /= count;
      type.shape = Shape(std::move(sizes));
      parts.push_back(abstract_tensor(type, each.sharding()));
    }
    return batch_.with(std::move(parts));
  }

  bool divides_batch(int count) const {
    return count >= 1 &&
           std::all_of(batch_.tensors.begin(), batch_.tensors.end(),
                       [&](const Tensor& each) { return each.shape()[0] % count == 0; });
  }

  std::vector<int> worker_counts() const {
    if (!options_.workers.empty()) return options_.workers;
    std::vector<int> counts;
    for (int count = 1; count <= layers_.count; ++count) counts.push_back(count);
    return counts;
  }
  std::vector<int> microbatch_counts(int workers) const {
    std::vector<int> counts = options_.microbatches;
    if (counts.empty()) counts = {workers, 2 * workers, 4 * workers};
    std::erase_if(counts, [&](int count) { return !divides_batch(count); });
    return counts;
  }

  // All candidates, in the order of their estimates.
  std::vector<PlannedPipeline> candidates() {
    std::vector<PlannedPipeline> all;
    for (int workers : worker_counts()) {
      if (workers < 1 || target_.size() % workers != 0 || workers > layers_.count) continue;
      std::vector<int> counts = microbatch_counts(workers);
      if (counts.empty()) continue;
      for (const auto& sizes : mesh_shapes(target_.size() / workers, options_.axes.size())) {
        std::vector<MeshAxis> axes;
        bool is_pinned_so = true;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          axes.push_back({options_.axes[i], sizes[i]});
          auto pinned = options_.pinned.find(options_.axes[i]);
          is_pinned_so &= pinned == options_.pinned.end() || pinned->second == sizes[i];
        }
        if (!is_pinned_so) continue;
        std::optional<LayerTimes> times = layer_times(workers, axes, counts.front());
        if (!times) continue;
        for (int count : counts) add_candidates(workers, axes, count, *times, all);
      }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.estimate < b.estimate; });
    return all;
  }

  void add_candidates(int workers, const std::vector<MeshAxis>& axes, int microbatches,
                      const LayerTimes& times, std::vector<PlannedPipeline>& to) const {
    for (PipelineScheduleKind kind : options_.schedules) {
      bool alternates = kind == PipelineScheduleKind::kOneForwardOneBackward;
      // A single worker waits for nobody: all orders are alike.
      if (workers == 1 && !alternates && options_.schedules.size() > 1) continue;
      for (int chunks : alternates ? options_.chunks : std::vector<int>{1}) {
        if (chunks < 1 || workers * chunks > layers_.count || (workers == 1 && chunks > 1))
          continue;
        PipelineCandidate one{kind, workers, chunks, microbatches, axes, {}};
        std::vector<double> costs;
        for (const StageTimes& layer : times.layers)
          costs.push_back(layer.forward + layer.input_gradient + layer.weight_gradient);
        one.layers = balanced_layers(costs, one.stages(), where_);
        try {
          to.push_back({.candidate = one, .estimate = estimate(one, times)});
        } catch (const Error&) {
          // The schedule does not exist for these numbers, such as interleaved 1F1B with a
          // number of microbatches that the workers do not divide.
        }
      }
    }
  }

  double estimate(const PipelineCandidate& candidate, const LayerTimes& times) const {
    // Parts of the batch take time in proportion to their size.
    double part = static_cast<double>(times.of) / candidate.microbatches;
    std::vector<StageTimes> stages;
    auto next = times.layers.begin();
    for (int count : candidate.layers) {
      StageTimes sum{0, 0, 0, 0, 0, 0};
      for (int i = 0; i < count; ++i, ++next) {
        sum.forward += next->forward * part;
        double backward = (next->input_gradient + next->weight_gradient) * part;
        sum.input_gradient += backward / 2;
        sum.weight_gradient += backward / 2;
        sum.update += next->update;
      }
      stages.push_back(sum);
    }
    return timeline_of(schedule_of(candidate, where_), stages, where_).length;
  }

  // Each layer as a stage of its own, all on the first worker's devices. None if they cannot run
  // there.
  std::optional<LayerTimes> layer_times(int workers, const std::vector<MeshAxis>& axes,
                                        int microbatches) {
    try {
      Mesh mesh = worker_meshes(workers, axes, target_, where_)[0];
      std::vector<PipelineStage> stages;
      for (int i = 0; i < layers_.count; ++i) stages.push_back(layers_.stage(i, i + 1, mesh));
      PipelineReport report =
          internal::explained(target_, stages, gpipe(layers_.count, 1), microbatch(microbatches),
                              options_.explain, &compiler_, where_);
      LayerTimes made{.of = microbatches, .layers = {}};
      for (const PipelineStageReport& one : report.stages()) made.layers.push_back(one.times);
      return made;
    } catch (const Error& error) {
      if (!first_error_) first_error_ = error;
      return std::nullopt;
    }
  }

  PlannedPipeline explained(PlannedPipeline one) {
    try {
      if (!divides_batch(one.candidate.microbatches))
        throw_invalid(where_, "[plan] the batch cannot be divided into ",
                      one.candidate.microbatches, " microbatches");
      PipelineSchedule schedule = schedule_of(one.candidate, where_);
      one.report = internal::explained(target_, stages_of(one.candidate, layers_, target_, where_),
                                       schedule, microbatch(one.candidate.microbatches),
                                       options_.explain, &compiler_, where_);
    } catch (const Error& error) {
      if (one.as_given) throw;
      if (!first_error_) first_error_ = error;
      one.problem = std::string(error.message());
    }
    return one;
  }

  Target target_;
  const PipelineLayers& layers_;
  const AnyStructure& batch_;
  PlanPipelineOptions options_;
  SourceLocation where_;
  internal::StageCompiler compiler_;
  std::optional<Error> first_error_;
};

}  // namespace

std::string PipelineCandidate::to_string() const {
  return cat(enum_name(schedule), chunks > 1 ? cat(", ", chunks, " chunks") : std::string(), ", ",
             workers, workers == 1 ? " worker of " : " workers of ", axes_text_of(axes), ", ",
             microbatches, microbatches == 1 ? " microbatch" : " microbatches", ", layers ",
             join(layers, ","));
}

PipelineSchedule schedule_of(const PipelineCandidate& candidate, SourceLocation where) {
  if (candidate.chunks != 1 && candidate.schedule != PipelineScheduleKind::kOneForwardOneBackward)
    throw_invalid(where, "[plan] only 1F1B has several chunks, not ",
                  enum_name(candidate.schedule));
  switch (candidate.schedule) {
    case PipelineScheduleKind::kGpipe:
      return gpipe(candidate.workers, candidate.microbatches, where);
    case PipelineScheduleKind::kZeroBubble:
      return zero_bubble(candidate.workers, candidate.microbatches, where);
    case PipelineScheduleKind::kOneForwardOneBackward: break;
  }
  if (candidate.chunks == 1)
    return one_forward_one_backward(candidate.workers, candidate.microbatches, where);
  return interleaved(candidate.workers, candidate.chunks, candidate.microbatches, where);
}

std::vector<PipelineStage> stages_of(const PipelineCandidate& candidate,
                                     const PipelineLayers& layers, const Target& target,
                                     SourceLocation where) {
  const std::vector<int>& counts = candidate.layers;
  if (candidate.workers < 1 || static_cast<int>(counts.size()) != candidate.stages() ||
      std::any_of(counts.begin(), counts.end(), [](int count) { return count < 1; }) ||
      std::accumulate(counts.begin(), counts.end(), 0) != layers.count)
    throw_invalid(where, "[plan] ", candidate.stages(), " stages of ", join(counts, ","),
                  " layers are not the model's ", layers.count, " layers");
  std::vector<Mesh> meshes = worker_meshes(candidate.workers, candidate.axes, target, where);
  std::vector<PipelineStage> stages;
  int begin = 0;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    stages.push_back(layers.stage(begin, begin + counts[s], meshes[s % meshes.size()]));
    begin += counts[s];
  }
  return stages;
}

PipelinePlan internal::planned(const Target& target, const PipelineLayers& layers,
                               const AnyStructure& batch, const PlanPipelineOptions& options,
                               SourceLocation where) {
  return PipelinePlanner(target, layers, batch, options, where).plan();
}

}  // namespace meshard

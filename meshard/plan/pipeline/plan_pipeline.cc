#include "meshard/plan/pipeline/plan_pipeline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"
#include "meshard/base/json_writer.h"
#include "meshard/explain/byte_text.h"
#include "meshard/explain/program_facts.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/pipeline/schedule/schedule.h"
#include "meshard/plan/candidate.h"
#include "meshard/plan/pipeline/internal/stage_compiler.h"
#include "meshard/report/diff_text.h"

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
  Mesh whole = mesh_on_target(all, target, DeviceOrder::kTorus).value(where);
  DeviceIds ids = whole.device_ids();
  std::int64_t size = whole.size() / workers;
  std::vector<Mesh> meshes;
  for (int w = 0; w < workers; ++w) meshes.push_back(*whole.submesh(names, ids[w * size]));
  return meshes;
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
    bool can_any_run =
        std::ranges::any_of(made.ranking, [](const auto& one) { return one.report.has_value(); });
    if (!can_any_run && first_error_) throw *first_error_;
    std::ranges::stable_sort(made.ranking, is_better);
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
      const PlannedPipeline& best = *std::ranges::min_element(ranking, is_better);
      if (!best.report) break;
      const std::vector<PipelineStageReport>& stages = best.report->stages();
      auto from = best.report->slowest();
      if (!best.fits())
        from = static_cast<int>(std::ranges::max_element(stages,
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
        bool is_known =
            std::ranges::any_of(ranking, [&](const auto& one) { return one.candidate == moved; });
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
    return count >= 1 && std::ranges::all_of(batch_.tensors, [&](const Tensor& each) {
             return each.shape()[0] % count == 0;
           });
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
    std::ranges::stable_sort(all,
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

// The stage with the least memory to spare.
const PipelineStageReport& fullest(const PipelineReport& report) {
  return *std::ranges::max_element(report.stages(), [](const auto& a, const auto& b) {
    return a.memory.total < b.memory.total;
  });
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// For each number of ranges and each end, the least combined value, and where the last range
// begins.
struct Table {
  Table(std::size_t parts, std::size_t layers)
      : width(layers + 1), value((parts + 1) * width, kInfinity), begin((parts + 1) * width, 0) {
    value[0] = 0;
  }
  double& at(std::size_t part, std::size_t end) { return value[part * width + end]; }
  std::size_t width;
  std::vector<double> value;
  std::vector<std::size_t> begin;
};

// @param combine of the value of the ranges before, and the cost of the last range
template <class Combine>
Table table_of(const std::vector<double>& sums, std::size_t parts, Combine combine) {
  const std::size_t layers = sums.size() - 1;
  Table table(parts, layers);
  for (std::size_t part = 1; part <= parts; ++part)
    for (std::size_t end = part; end <= layers; ++end)
      for (std::size_t begin = part - 1; begin < end; ++begin) {
        double value = combine(table.at(part - 1, begin), sums[end] - sums[begin]);
        if (value < table.at(part, end)) {
          table.at(part, end) = value;
          table.begin[part * table.width + end] = begin;
        }
      }
  return table;
}

}  // namespace

std::string PipelineCandidate::to_string() const {
  return cat(enum_name(schedule), chunks > 1 ? cat(", ", chunks, " chunks") : std::string(), ", ",
             workers, workers == 1 ? " worker of " : " workers of ", axes_text(axes), ", ",
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
      std::ranges::any_of(counts, [](int count) { return count < 1; }) ||
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

const PlannedPipeline* PipelinePlan::given() const {
  for (const PlannedPipeline& one : ranking)
    if (one.as_given) return &one;
  return nullptr;
}

std::string PipelinePlan::reason(std::size_t index) const {
  const PlannedPipeline& one = ranking[index];
  if (!one.report) return cat("cannot run: ", one.problem);
  const PipelineReport& report = *one.report;
  const PipelineStageReport& slowest = report.stages()[static_cast<std::size_t>(report.slowest())];
  std::string text = report.duration_text(report.time());
  if (index > 0 && one.fits() && ranking[0].report->time() > 0)
    append(text, " (",
           relative_growth_text(ranking[0].report->time(), report.time()).empty()
               ? std::string("as the first")
               : relative_growth_text(ranking[0].report->time(), report.time()),
           ")");
  append(text, ", bubble ", growth_percent(report.bubble()), ", slowest ", slowest.name, " with ",
         report.duration_text(slowest.busy));
  double exposed = 0;
  for (const PipelineTransfer& each : report.transfers()) exposed = std::max(exposed, each.exposed);
  if (exposed > 0)
    append(text, ", transfers make it up to ", report.duration_text(exposed), " longer");
  const PipelineStageReport& full = fullest(report);
  append(text, "; ", byte_text(full.memory.total));
  if (full.memory.capacity) append(text, " of ", byte_text(*full.memory.capacity));
  append(text, " in ", full.name);
  for (const PipelineStageReport& stage : report.stages())
    if (!stage.fits()) append(text, "; ", stage.name, " does not fit");
  return text;
}

std::string PipelinePlan::to_string(std::size_t most) const {
  std::string out = cat(considered, " candidates, ", ranking.size(), " of them explained with ",
                        compiled, " compiled programs\n");
  if (!anything_fits()) append(out, "nothing fits\n");
  if (given_is_best()) append(out, "nothing better than the given pipeline was found\n");
  const auto line = [&](std::size_t i) {
    append(out, i + 1, ". ", ranking[i].as_given ? "as given: " : "",
           ranking[i].candidate.to_string(), "\n   ", reason(i), "\n");
  };
  for (std::size_t i = 0; i < ranking.size(); ++i)
    if (i < most || ranking[i].as_given) line(i);
  return out;
}

std::string to_json(const PipelinePlan& plan, std::size_t indent) {
  JsonWriter json(indent);
  json.begin_object().member("schema", "meshard.pipeline_plan").member("version", 1);
  json.member("considered", plan.considered).member("compiled", plan.compiled);
  json.member("anything_fits", plan.anything_fits());
  json.member("given_is_best", plan.given_is_best());
  json.key("candidates").begin_array();
  for (std::size_t i = 0; i < plan.ranking.size(); ++i) {
    const PlannedPipeline& one = plan.ranking[i];
    json.begin_object().member("schedule", enum_name(one.candidate.schedule));
    json.member("workers", one.candidate.workers).member("chunks", one.candidate.chunks);
    json.member("microbatches", one.candidate.microbatches).key("axes").begin_object();
    for (const MeshAxis& axis : one.candidate.axes) json.member(axis.name, axis.size);
    json.end_object().key("layers").begin_array();
    for (int count : one.candidate.layers) json.value(count);
    json.end_array().member("as_given", one.as_given).member("fits", one.fits());
    json.member("estimate", one.estimate).member("problem", one.problem);
    json.member("reason", plan.reason(i));
    if (one.report) {
      json.member("time", one.report->time()).member("bubble", one.report->bubble());
      json.member("times_known", one.report->times_known());
    }
    json.end_object();
  }
  json.end_array().end_object();
  return std::move(json).text();
}

std::vector<int> balanced_layers(std::span<const double> costs, int stages, SourceLocation where) {
  if (stages < 1 || static_cast<std::size_t>(stages) > costs.size())
    throw_invalid(where, "[plan] ", costs.size(), " layers cannot be divided into ", stages,
                  " stages");
  std::vector<double> sums{0};
  for (double cost : costs) {
    if (!(cost >= 0) || !std::isfinite(cost))
      throw_invalid(where, "[plan] a layer has the cost ", cost);
    sums.push_back(sums.back() + cost);
  }
  auto parts = static_cast<std::size_t>(stages);
  const double largest = table_of(sums, parts, [](double before, double cost) {
                           return std::max(before, cost);
                         }).at(parts, costs.size());
  Table table = table_of(sums, parts, [&](double before, double cost) {
    return cost <= largest ? before + cost * cost : kInfinity;
  });
  std::vector<int> counts(parts);
  for (std::size_t end = costs.size(); parts > 0; --parts) {
    std::size_t begin = table.begin[parts * table.width + end];
    counts[parts - 1] = static_cast<int>(end - begin);
    end = begin;
  }
  return counts;
}

}  // namespace meshard

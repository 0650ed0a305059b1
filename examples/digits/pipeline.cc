#include "examples/digits/pipeline.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace digits {

using namespace meshard;

namespace {

using Layers = std::vector<Linear>;
constexpr int kParts = 4;

// Parts `first` to `last` - 1 of the model: columns, rows, head, loss. `layers` has those of them
// that are layers.
Tensor through(const Layers& layers, int first, int last, Tensor x, const Tensor& labels) {
  for (int part = first; part < last; ++part) {
    if (part + 1 == kParts) return cross_entropy(x, labels);
    const Linear& layer = layers[static_cast<std::size_t>(part - first)];
    x = part + 2 == kParts ? apply(layer, x) : hidden(layer, x);
  }
  return x;
}

// Stages share the parts as evenly as possible; earlier ones have fewer.
int first_part(int stage, int stages) { return kParts * stage / stages; }

}  // namespace

std::vector<Batch> microbatches_of(const Digits& digits, std::int64_t count) {
  std::vector<Batch> all;
  std::int64_t rows = digits.size() / count;
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(rows));
  for (std::int64_t m = 0; m < count; ++m) {
    std::iota(numbers.begin(), numbers.end(), static_cast<std::int32_t>(m * rows));
    Digits some = digits.pick(numbers);
    all.push_back({from_host(std::move(some.pixels), {rows, kPixels}),
                   from_host(std::move(some.labels), {rows})});
  }
  return all;
}

PipelineSchedule schedule_of(const Options& options) {
  auto stages = static_cast<int>(options.stages);
  auto microbatches = static_cast<int>(options.microbatches);
  if (options.schedule == "gpipe") return gpipe(stages, microbatches);
  if (options.schedule == "zb-h1") return zero_bubble(stages, microbatches);
  if (options.schedule == "1f1b") return one_forward_one_backward(stages, microbatches);
  auto workers = static_cast<int>(options.workers());
  return interleaved(workers, stages / workers, microbatches);
}

Pipeline make_pipeline(const Classifier& model, const Options& options, PipelineOptions how) {
  PipelineSchedule schedule = schedule_of(options);
  const std::array<Linear, kParts - 1> layers{model.columns, model.rows, model.head};
  std::vector<PipelineStage> stages;
  for (int s = 0; s < schedule.stages(); ++s) {
    const Mesh mesh = options.mesh(schedule.worker_of(s));
    const int first = first_part(s, schedule.stages()), last = first_part(s + 1, schedule.stages());
    Layers own;
    for (int part = first; part < std::min(last, kParts - 1); ++part)
      own.push_back(layers[static_cast<std::size_t>(part)]);
    if (s == 0)
      stages.emplace_back(mesh, own, [=](const Layers& params, const Batch& batch) {
        Tensor images = mark_sharding(batch.images, mesh, P("data", none));
        return through(params, first, last, images, batch.labels);
      });
    else
      stages.emplace_back(mesh, own,
                          [=](const Layers& params, const Tensor& x, const Batch& batch) {
                            return through(params, first, last, x, batch.labels);
                          });
  }
  return Pipeline(std::move(stages), std::move(schedule), std::move(how));
}

Classifier joined(const Pipeline& pipeline) {
  Layers layers;
  for (int s = 0; s < pipeline.schedule().stages(); ++s)
    for (const Linear& layer : pipeline.parameters<Layers>(s)) layers.push_back(layer);
  const Mesh& mesh = layers.front().w.sharding()->mesh();
  for (Linear& layer : layers)
    for (Tensor* each : {&layer.w, &layer.b})
      *each = transfer(*each, mesh, each->sharding()->spec());
  return {layers.at(0), layers.at(1), layers.at(2)};
}

}  // namespace digits

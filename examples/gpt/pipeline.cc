#include "examples/gpt/pipeline.h"

#include <utility>

namespace gpt {

using namespace meshard;

namespace {

// The stage's function, of which the first stage begins with bytes and the last one ends with the
// loss.
PipelineStage make_stage(const Part& part, const Mesh& mesh, const nn::AxisRules& rules) {
  if (part.bytes)
    return {mesh, part, [rules](const Part& own, const Tensor& windows) {
              Tensor bytes = rules.mark(inputs_of(windows), P("batch", none));
              return through(own.blocks, embed(*own.bytes, bytes, rules), rules);
            }};
  if (part.head)
    return {mesh, part, [rules](const Part& own, const Tensor& x, const Tensor& windows) {
              Tensor logits = to_logits(*own.norm, *own.head, through(own.blocks, x, rules));
              return cross_entropy(logits, rules.mark(targets_of(windows), P("batch", none)));
            }};
  return {mesh, part, [rules](const Part& own, const Tensor& x, const Tensor&) {
            return through(own.blocks, x, rules);
          }};
}

// Some of the layers; each device keeps its parts of them.
Tensor layers_of(const Tensor& stacked, std::int64_t first, std::int64_t last) {
  Tensor some = index(stacked, {range(first, last)});
  return stacked.sharding() ? mark_sharding(some, *stacked.sharding()) : some;
}

// The tensors on another mesh with the same axes.
template <class T>
T moved(const T& value, const Mesh& mesh) {
  std::vector<Tensor> tensors;
  for (const Tensor& each : structure::tensors(value))
    tensors.push_back(transfer(each, mesh, each.sharding()->spec()));
  return structure::with_tensors(value, tensors);
}

}  // namespace

Part part_of(const Gpt& model, std::int64_t stage, std::int64_t stages) {
  auto layers = static_cast<std::int64_t>(model.blocks.size());
  std::int64_t first = layers * stage / stages, last = layers * (stage + 1) / stages;
  std::vector<Tensor> blocks;
  for (const Tensor& each : structure::tensors(model.blocks))
    blocks.push_back(layers_of(each, first, last));
  Part part{.blocks = structure::with_tensors(model.blocks, blocks)};
  if (stage == 0) part.bytes = model.bytes;
  if (stage + 1 == stages) {
    part.norm = model.norm;
    part.head = model.head;
  }
  return part;
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

Pipeline make_pipeline(const Gpt& model, const Options& options, PipelineOptions how) {
  PipelineSchedule schedule = schedule_of(options);
  std::vector<PipelineStage> stages;
  for (int s = 0; s < schedule.stages(); ++s) {
    Mesh mesh = options.mesh(schedule.worker_of(s));
    stages.push_back(
        make_stage(part_of(model, s, options.stages), mesh, rules_for(mesh, options.sequence)));
  }
  return Pipeline(std::move(stages), std::move(schedule), std::move(how));
}

Gpt joined(const Pipeline& pipeline) {
  std::vector<Part> parts;
  for (int s = 0; s < pipeline.schedule().stages(); ++s) {
    Part part = pipeline.parameters<Part>(s);
    const Mesh& mesh = (parts.empty() ? part : parts.front()).bytes->table.sharding()->mesh();
    parts.push_back(moved(part, mesh));
  }
  Gpt model{.bytes = *parts.front().bytes,
            .blocks = parts.front().blocks,
            .norm = *parts.back().norm,
            .head = *parts.back().head};
  std::vector<Tensor> blocks = structure::tensors(model.blocks);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    std::vector<Tensor> layers;
    for (const Part& part : parts) layers.push_back(structure::tensors(part.blocks)[i]);
    blocks[i] = mark_sharding(concat(layers, 0), *blocks[i].sharding());
  }
  model.blocks = structure::with_tensors(model.blocks, blocks);
  return model;
}

}  // namespace gpt

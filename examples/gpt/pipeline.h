// The model as a pipeline of stages, each on its own devices.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "examples/gpt/model.h"
#include "examples/gpt/options.h"
#include "meshard/meshard.h"

namespace gpt {

/// The part of the model that one stage has: some of the layers; in the first stage also the
/// embedding, in the last one the norm and the head.
struct Part {
  std::optional<meshard::nn::Embedding> bytes = {};
  meshard::nn::Layers<Block> blocks = {};
  std::optional<meshard::nn::RmsNorm> norm = {};
  std::optional<meshard::nn::Linear> head = {};
  MESHARD_FIELDS(bytes, blocks, norm, head)
};

/// The part of stage `stage` of `stages`: layers stage * L / stages to (stage + 1) * L / stages.
Part part_of(const Gpt& model, std::int64_t stage, std::int64_t stages);

/// The schedule that the options ask for. @error as for the schedule's function
meshard::PipelineSchedule schedule_of(const Options& options);

/// The model in `options.stages` stages, each on its worker's mesh, options.mesh(worker).
/// @param options those of the pipeline: its optimizer and the limit of the gradient's norm
meshard::Pipeline make_pipeline(const Gpt& model, const Options& options,
                                meshard::PipelineOptions how);

/// The whole model, on the devices of the first stage.
Gpt joined(const meshard::Pipeline& pipeline);

}  // namespace gpt

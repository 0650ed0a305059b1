// The classifier as a pipeline of stages, each on its own devices.
#pragma once
#include <vector>

#include "examples/digits/data.h"
#include "examples/digits/model.h"
#include "examples/digits/options.h"
#include "meshard/meshard.h"

namespace digits {

/// A microbatch.
struct Batch {
  meshard::Tensor images, labels;
  MESHARD_FIELDS(images, labels)
};

/// Equal parts of a batch. @pre `count` divides the number of digits
std::vector<Batch> microbatches_of(const Digits& digits, std::int64_t count);

/// The schedule that the options ask for. @error as for the schedule's function
meshard::PipelineSchedule schedule_of(const Options& options);

/// Up to four stages: the three layers and the loss, which has no parameters. Fewer stages have
/// several of these. Each is on its worker's mesh, options.mesh(worker).
meshard::Pipeline make_pipeline(const Classifier& model, const Options& options,
                                meshard::PipelineOptions how);

/// The whole model, on the devices of the first stage.
Classifier joined(const meshard::Pipeline& pipeline);

}  // namespace digits

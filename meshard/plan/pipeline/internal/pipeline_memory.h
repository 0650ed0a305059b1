// The most memory that the stages of a pipeline need at the same time.
#pragma once
#include <cstdint>
#include <vector>

#include "meshard/graph/tensor.h"
#include "meshard/plan/pipeline/pipeline_report.h"

namespace meshard::internal {

/// The bytes of the largest shard of each tensor on one device, together.
std::int64_t device_bytes(const std::vector<Tensor>& tensors);

/// Value type: what one device of a stage needs, in bytes.
struct StageNeeds {
  /// Parameters, gradients and optimizer state.
  std::int64_t always = 0;
  /// What a microbatch keeps after its forward, and after its input gradient.
  std::int64_t after_forward = 0, after_input_gradient = 0;
  /// What comes from the previous stage and from the next one for a microbatch. It waits in memory
  /// until it is used.
  std::int64_t received_forward = 0, received_backward = 0;
  /// Of the largest program but the update, while it runs.
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

// The optimizer's step of all stages of a pipeline.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "meshard/graph/tensor.h"
#include "meshard/pipeline/stage_state.h"

namespace meshard::internal {

/// The gradients' norm, as programs.
class GradientNorm {
 public:
  GradientNorm();
  /// The factor that limits the norm of the accumulators of all stages to `limit`. Tied parameters
  /// count once. Empty without a limit (0), or without gradients.
  std::vector<Tensor> factor(std::span<const StageState> stages, std::span<const Tie> ties,
                             double limit) const;

 private:
  struct Run {
    Tensor operator()(const std::vector<Tensor>& gradients) const;
  };
  Jit<Run> squares_;
};

/// The new values of one stage.
struct UpdatedStage {
  std::vector<Tensor> parameters, optimizer_state;
};

/// @error invalid argument: a stage has parameters that an optimizer cannot update
void check_trainable(const StageState& stage);

/// Launches the optimizer's step of one stage. It uses up the accumulators, in whose memory the new
/// parameters are. The parameters and the optimizer's state remain as they are until the caller
/// replaces them, because another stage's step may fail.
UpdatedStage updated(StageState& stage, const PipelineOptimizer& optimizer,
                     const std::vector<Tensor>& factor);

}  // namespace meshard::internal

// The values of the stages of a pipeline.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "meshard/graph/tensor.h"
#include "meshard/mesh/mesh.h"
#include "meshard/pipeline/schedule/schedule.h"
#include "meshard/pipeline/stage.h"
#include "meshard/pipeline/stage_programs.h"
#include "meshard/sharding/sharding.h"
#include "meshard/trace/jit.h"

namespace meshard::internal {

/// True if the value has a sharding over the devices of `mesh`.
bool is_on(const Tensor& value, const Mesh& mesh);

/// The sharding over `mesh` that is most like `sharding`: each dimension is split along the axes of
/// the same names, as far as they exist and divide it evenly. Without a sharding: replicated.
Sharding like_sharding(const std::optional<Sharding>& sharding, const Mesh& mesh,
                       const Shape& shape);

/// The value on the devices of `mesh`: itself if it is there, else a copy in like_sharding().
Tensor placed(const Tensor& value, const Mesh& mesh);

/// The optimizer's step of one stage.
struct UpdateRun {
  std::shared_ptr<const StageFunction> function;
  PipelineOptimizer optimizer;
  AnyStructure state;  // its form
  /// @param factor of all gradients; empty: none
  /// @return the new parameters, and the new state
  std::pair<std::vector<Tensor>, std::vector<Tensor>> operator()(
      const std::vector<Tensor>& parameters, const std::vector<Tensor>& gradients,
      const std::vector<Tensor>& now, const std::vector<Tensor>& factor) const;
};

/// Makes the accumulators of one stage.
struct ZerosRun {
  std::vector<TensorType> types;
  std::vector<std::optional<Sharding>> shardings;
  std::vector<Tensor> operator()() const;
};

/// The sharding of a result of a stage, and that on the next stage's mesh.
struct Destination {
  std::optional<Sharding> from;
  Sharding to;
};

/// A stage with its values.
struct StageState {
  explicit StageState(PipelineStage made) : stage(std::move(made)) {}
  PipelineStage stage;
  std::string name;
  /// Whether the schedule computes the gradients of inputs and parameters apart.
  bool splits_gradients = false;
  std::vector<Tensor> parameters, accumulators;
  /// Of its results, once they have been sent.
  std::vector<Destination> destinations;
  AnyStructure optimizer_state;
  std::optional<StagePrograms> programs;
  std::optional<Jit<ZerosRun>> zeros;
  std::optional<Jit<UpdateRun>> update;

  /// The accumulator of parameter `leaf`; null if it has no gradient.
  Tensor* accumulator(std::size_t leaf);
};

/// The stages of a pipeline with their names, without values and programs.
/// @pre as many as the schedule has
std::vector<StageState> stage_states(std::vector<PipelineStage> stages,
                                     const PipelineSchedule& schedule);

/// Traces the stages, one after the other.
void trace_stages(std::span<StageState> stages, const AnyStructure& microbatch,
                  const PipelineSchedule& schedule);

/// The types and shardings of the accumulators: those of the parameters, f32 for narrower floats.
/// @pre the stage has programs
ZerosRun accumulators_of(const StageState& stage);

/// A program that makes the accumulators of zeros.
/// @pre the stage has programs
Jit<ZerosRun> zeros_of(const StageState& stage);

/// A parameter that is also one of an earlier stage.
struct Tie {
  std::size_t stage, leaf, owner_stage, owner_leaf;
};

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

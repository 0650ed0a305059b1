// The values of the stages of a pipeline.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meshard/pipeline/stage.h"
#include "meshard/pipeline/stage_programs.h"
#include "meshard/sharding/sharding.h"
#include "meshard/trace/jit.h"

namespace meshard::internal {

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

/// A program that makes the accumulators: zeros like the parameters, f32 for narrower floats.
/// @pre the stage has programs
Jit<ZerosRun> zeros_of(const StageState& stage);

/// A parameter that is also one of an earlier stage.
struct Tie {
  std::size_t stage, leaf, owner_stage, owner_leaf;
};

}  // namespace meshard::internal

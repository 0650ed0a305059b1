// Training: the step, and the training loop.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "examples/gpt/model.h"
#include "examples/gpt/options.h"
#include "examples/gpt/text.h"
#include "meshard/meshard.h"

namespace gpt {

/// The state of training.
struct Training {
  Gpt model;
  meshard::optim::AdamState<Gpt> adam;
  MESHARD_FIELDS(model, adam)
};

/// The contents of a checkpoint: the members of Trained, and the optimizer state.
struct Checkpoint {
  Gpt model;
  meshard::optim::AdamState<Gpt> adam;
  std::int64_t context = 0;
  MESHARD_FIELDS(model, adam, context)
};

/// The outputs of a step: the loss before the step and the gradient's norm, both f32.
struct Metrics {
  meshard::Tensor loss, norm;
  MESHARD_FIELDS(loss, norm)
};

/// Trains on the mesh of the options: with one jitted step, or as a pipeline of
/// `options.stages` stages. The losses are the same.
class Trainer {
 public:
  /// Called after each step with the number of steps taken and the loss.
  using Progress = std::function<void(std::int64_t, double)>;

  Trainer(const Options& options, Text text);

  /// Trains until `options.steps` steps are taken, and returns the losses of this call's steps.
  /// Saves a Checkpoint every `options.save_every` steps, while it trains on, and at the end, if
  /// the options name a file; of a pipeline, only the members of Trained.
  std::vector<double> run(const Progress& progress = {});
  /// Resumes from the checkpoint in the options: restores the state onto this mesh, and continues
  /// its step count. @pre one stage. @error as for io::restore
  meshard::Result<void> resume();
  /// The loss on the held-out text, on `batches` batches of it. Default: 0, all batches.
  double held_back_loss(std::int64_t batches = 0) const;

  /// The model and the optimizer's state. @pre one stage
  const Training& state() const { return state_; }
  /// The model; that of a pipeline is brought to the devices of the first stage.
  Gpt model() const;
  /// The pipeline, if there are several stages.
  const std::optional<meshard::Pipeline>& pipeline() const { return pipeline_; }
  const meshard::nn::AxisRules& rules() const { return rules_; }
  /// Number of steps taken so far.
  std::int64_t steps() const { return steps_; }
  /// The StableHLO module of the step, for `meshard explain`. @pre one stage
  std::string module() const;
  /// The jitted step, for explain().
  const auto& step() const { return step_; }

 private:
  using Step = std::function<std::pair<Training, Metrics>(const Training&, const meshard::Tensor&)>;
  meshard::Tensor windows(std::vector<std::int32_t> bytes) const;
  // Takes a step, and returns the loss before it.
  double train_on(std::vector<std::int32_t> bytes);

  Options options_;
  Text text_;
  meshard::nn::AxisRules rules_;
  Training state_;
  std::int64_t steps_ = 0;
  std::optional<meshard::Pipeline> pipeline_;
  meshard::Jit<Step> step_;
  meshard::Jit<std::function<meshard::Tensor(const Gpt&, const meshard::Tensor&)>> loss_;
};

}  // namespace gpt

// Training: the step, and the loop around it.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "examples/gpt/model.h"
#include "examples/gpt/options.h"
#include "examples/gpt/text.h"
#include "meshard/meshard.h"

namespace gpt {

/// What a step turns into the next one.
struct Training {
  Gpt model;
  meshard::optim::AdamState<Gpt> adam;
  MESHARD_FIELDS(model, adam)
};

/// What a checkpoint holds: what a Trained does, and the optimiser's state.
struct Checkpoint {
  Gpt model;
  meshard::optim::AdamState<Gpt> adam;
  std::int64_t context = 0;
  MESHARD_FIELDS(model, adam, context)
};

/// What a step tells: the loss before it and the norm of its gradient, both f32.
struct Told {
  meshard::Tensor loss, norm;
  MESHARD_FIELDS(loss, norm)
};

class Trainer {
 public:
  /// Called after each step with the number of steps taken and the loss.
  using Progress = std::function<void(std::int64_t, double)>;

  Trainer(const Options& options, Text text);

  /// Trains until `options.steps` steps are taken, and saves a Checkpoint now and then if the
  /// options name one; the losses of the steps taken now.
  std::vector<double> run(const Progress& progress = {});
  /// Goes on from the options' checkpoint: restores the state, onto this mesh, and counts from its
  /// steps. @error as io::restore
  meshard::Result<void> resume();
  /// The loss on the held-back text: on `batches` batches of it, or on all.
  double held_back_loss(std::int64_t batches = 0) const;

  const Training& state() const { return state_; }
  const meshard::nn::AxisRules& rules() const { return rules_; }
  /// Steps taken so far.
  std::int64_t steps() const { return steps_; }
  /// The StableHLO module of the step, for `meshard explain`.
  std::string module() const;
  /// The jitted step, for explain().
  const auto& step() const { return step_; }

 private:
  using Step = std::function<std::pair<Training, Told>(const Training&, const meshard::Tensor&)>;
  meshard::Tensor windows(std::vector<std::int32_t> bytes) const;

  Options options_;
  Text text_;
  meshard::nn::AxisRules rules_;
  Training state_;
  std::int64_t steps_ = 0;
  meshard::Jit<Step> step_;
  meshard::Jit<std::function<meshard::Tensor(const Gpt&, const meshard::Tensor&)>> loss_;
};

}  // namespace gpt

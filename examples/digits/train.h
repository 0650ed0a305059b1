// Training: a step with Adam, and the training loop.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "examples/digits/data.h"
#include "examples/digits/model.h"
#include "examples/digits/options.h"
#include "meshard/meshard.h"

namespace digits {

/// The state of training: the model and Adam's state. Adam's state has running means of the
/// gradients and of their squares, sharded like the weights, and the number of steps.
struct Training {
  Classifier model;
  meshard::optim::AdamState<Classifier> adam;
  MESHARD_FIELDS(model, adam)
};

Training make_training(const meshard::Mesh& mesh, std::uint64_t seed);

/// One step of Adam (Kingma and Ba, 2015) on a batch: the new state, and the loss before the step.
std::pair<Training, meshard::Tensor> train_step(Training state, meshard::Tensor images,
                                                meshard::Tensor labels);

/// Trains on a mesh, or as a pipeline of stages; the losses are the same. The compiled step donates
/// the state, so that its memory is reused.
class Trainer {
 public:
  Trainer(const meshard::Mesh& mesh, std::uint64_t seed);
  /// As the options say: on their mesh, or as a pipeline of `options.stages` stages.
  explicit Trainer(const Options& options);

  /// Runs `steps` steps and returns their losses; calls `progress(steps taken, loss)` after each.
  std::vector<double> run(const Digits& digits, std::int64_t steps,
                          const std::function<void(std::int64_t, double)>& progress = {});
  /// The fraction of `digits` that the model classifies correctly.
  double accuracy(const Digits& digits) const;

  /// The model and Adam's state. @pre no pipeline
  const Training& state() const { return state_; }
  /// The model; that of a pipeline is brought to the devices of the first stage.
  Classifier model() const;
  /// The pipeline, if there are several stages.
  const std::optional<meshard::Pipeline>& pipeline() const { return pipeline_; }
  /// The jitted step, for explain(). @pre no pipeline
  const auto& step() const { return step_; }

 private:
  using Step = std::pair<Training, meshard::Tensor> (*)(Training, meshard::Tensor, meshard::Tensor);
  // Takes a step, and returns the loss before it.
  double train_on(const Digits& batch);
  meshard::Mesh mesh_;
  std::uint64_t seed_;
  std::int64_t microbatches_ = 1;
  Training state_;
  std::optional<meshard::Pipeline> pipeline_;
  meshard::Jit<Step> step_;
};

/// Copies digits to tensors on the mesh, sharded over "data".
std::pair<meshard::Tensor, meshard::Tensor> to_devices(Digits digits, const meshard::Mesh& mesh);

}  // namespace digits

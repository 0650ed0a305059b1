// Training: a step with Adam, and the training loop.
#pragma once
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "examples/digits/data.h"
#include "examples/digits/model.h"
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

/// Trains on a mesh. The compiled step donates the state, so that its memory is reused.
class Trainer {
 public:
  Trainer(const meshard::Mesh& mesh, std::uint64_t seed);

  /// Runs `steps` steps and returns their losses; calls `progress(steps taken, loss)` after each.
  std::vector<double> run(const Digits& digits, std::int64_t steps,
                          const std::function<void(std::int64_t, double)>& progress = {});
  /// The fraction of `digits` that the model classifies correctly.
  double accuracy(const Digits& digits) const;

  const Training& state() const { return state_; }
  /// The jitted step, for explain().
  const auto& step() const { return step_; }

 private:
  using Step = std::pair<Training, meshard::Tensor> (*)(Training, meshard::Tensor, meshard::Tensor);
  meshard::Mesh mesh_;
  std::uint64_t seed_;
  Training state_;
  meshard::Jit<Step> step_;
};

/// Copies digits to tensors on the mesh, sharded over "data".
std::pair<meshard::Tensor, meshard::Tensor> to_devices(Digits digits, const meshard::Mesh& mesh);

}  // namespace digits

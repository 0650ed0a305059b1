// Fine-tuning: all parameters, or low-rank adapters.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "examples/llm/model/model.h"
#include "examples/llm/train/adapter.h"
#include "examples/llm/train/samples.h"

namespace llm {

struct FinetuneOptions {
  std::int64_t steps = 100, rows = 8, length = 512;
  std::uint64_t seed = 1;
  double rate = 1e-4;
  std::int64_t warm_up = 0;    ///< steps in which the rate rises; then it falls linearly to 0
  bool constant_rate = false;  ///< it does not fall
  double weight_decay = 0, clip = 1;
  bool recompute = false;  ///< layers are computed again for the gradient, which needs less memory
  /// nullopt: all parameters are trained.
  std::optional<AdapterConfig> adapter = std::nullopt;
  std::string adapter_from = {};  ///< a folder with adapters to begin with; empty: new ones
  std::int64_t save_every = 100;
  std::string checkpoint = {};  ///< of the training; empty: none
};

/// What is trained: either.
struct Trained {
  std::optional<Model> model;
  std::optional<Adapters> adapters;
  MESHARD_FIELDS(model, adapters)
};
struct TrainingState {
  Trained trained;
  meshard::optim::AdamState<Trained> adam;
  MESHARD_FIELDS(trained, adam)
};
struct StepMetrics {
  meshard::Tensor loss, norm;
  MESHARD_FIELDS(loss, norm)
};

/// The mean cross-entropy of the labels: those of position i with the logits of i - 1. tokens and
/// labels are i32[rows, length].
meshard::Tensor loss_of(const Model& model, const Config& config, const meshard::Tensor& tokens,
                        const meshard::Tensor& labels, const meshard::nn::AxisRules& rules,
                        const std::optional<Adaptation>& adaptation, bool recompute);

/// Owner of a training.
class Finetuning {
 public:
  /// @error invalid argument: attention_dropout, which training would need; quantized weights
  /// without adapters; as make_adapters and load_adapters
  static meshard::Result<Finetuning> create(Model model, const Config& config,
                                            const meshard::nn::AxisRules& rules,
                                            const FinetuneOptions& options,
                                            std::vector<Sample> samples);

  /// Called after each step with the number of steps taken, the loss before the step, the rate and
  /// the gradients' norm.
  using Progress = std::function<void(std::int64_t, double, double, double)>;
  /// Trains until the options' number of steps is reached. Saves the state while it trains on.
  void run(const Progress& progress);
  /// Continues from the checkpoint. @error as io::restore
  meshard::Result<void> resume();
  /// The gradients of the step to come, before they are clipped.
  Trained gradients() const;

  [[nodiscard]] const Trained& trained() const { return state_.trained; }
  [[nodiscard]] std::int64_t steps() const { return steps_; }

 private:
  using Step = std::function<std::pair<TrainingState, StepMetrics>(
      const TrainingState&, const std::optional<Model>&, const meshard::Tensor&,
      const meshard::Tensor&)>;
  Finetuning(std::optional<Model> frozen, const Config& config, const meshard::nn::AxisRules& rules,
             const FinetuneOptions& options, std::vector<Sample> samples, Trained trained);
  std::pair<meshard::Tensor, meshard::Tensor> batch(std::int64_t step) const;

  Config config_;
  meshard::nn::AxisRules rules_;
  FinetuneOptions options_;
  std::vector<Sample> samples_;
  std::optional<Model> frozen_;
  TrainingState state_;
  std::int64_t steps_ = 0;
  meshard::optim::AdamW optimizer_;
  meshard::Jit<Step> step_;
};

}  // namespace llm

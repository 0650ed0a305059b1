#include "examples/gpt/train.h"

#include <algorithm>
#include <utility>

#include "examples/gpt/pipeline.h"

namespace gpt {

using namespace meshard;

namespace {

constexpr double kLimit = 1.0;  // maximum norm of the gradient

optim::AdamW optimizer_of(const Options& options) {
  std::int64_t warm = std::min<std::int64_t>(20, options.steps);
  std::int64_t rest = std::max<std::int64_t>(options.steps - warm, 1);
  return {.rate = optim::warm_up(options.rate, warm,
                                 optim::cosine(options.rate, rest, options.rate / 20)),
          .beta2 = 0.98,
          .weight_decay = 0.1,
          .decay_rank = 2};
}

}  // namespace

Trainer::Trainer(const Options& options, Text text)
    : options_(options),
      text_(std::move(text)),
      rules_(rules_for(options.mesh(), options.sequence)),
      step_(jit(Step([adam = optimizer_of(options), rules = rules_](const Training& state,
                                                                    const Tensor& windows) {
                  auto loss_at = [&](const Gpt& model) { return loss_of(model, windows, rules); };
                  auto [loss, raw] = value_and_grad(loss_at)(state.model);
                  auto [gradients, norm] = optim::clip_by_global_norm(raw, kLimit);
                  auto [model, next] = optim::update(adam, state.model, gradients, state.adam);
                  return std::pair(Training{model, next}, Metrics{loss, norm});
                }),
                {.name = "train_step", .donate = {0}})),
      loss_(jit(std::function<Tensor(const Gpt&, const Tensor&)>(
                    [rules = rules_](const Gpt& model, const Tensor& windows) {
                      return loss_of(model, windows, rules);
                    }),
                {.name = "loss"})) {
  Gpt model = nn::create(rules_, static_cast<std::int64_t>(options.seed),
                         [&](nn::Maker& make) { return make_gpt(make, options.sizes); });
  if (options.stages > 1) {
    pipeline_ =
        make_pipeline(model, options, {.optimizer = optimizer_of(options), .clip_norm = kLimit});
    return;
  }
  state_ = {model, optim::init(optimizer_of(options), model)};
}

Gpt Trainer::model() const { return pipeline_ ? joined(*pipeline_) : state_.model; }

Tensor Trainer::windows(std::vector<std::int32_t> bytes) const {
  std::int64_t length = options_.context + 1;
  auto rows = static_cast<std::int64_t>(bytes.size()) / length;
  return rules_.mark(from_host(std::move(bytes), {rows, length}), P("batch", none));
}

double Trainer::train_on(std::vector<std::int32_t> bytes) {
  if (pipeline_) {
    std::vector<Tensor> microbatches;
    std::int64_t length = options_.context + 1, rows = options_.batch / options_.microbatches;
    for (auto first = bytes.begin(); first != bytes.end(); first += rows * length)
      microbatches.push_back(
          from_host(std::vector<std::int32_t>(first, first + rows * length), {rows, length}));
    // Processes without a stage report the loss, too.
    return gather(pipeline_->step(microbatches)).item<float>();
  }
  auto [next, metrics] = step_(state_, windows(std::move(bytes)));
  state_ = std::move(next);
  return metrics.loss.item<float>();
}

std::vector<double> Trainer::run(const Progress& progress) {
  std::vector<double> losses;
  io::Saving saving;
  while (steps_ < options_.steps) {
    losses.push_back(train_on(
        windows_of_step(text_.train, options_.batch, options_.context, options_.seed, steps_)));
    ++steps_;
    if (progress) progress(steps_, losses.back());
    bool due = steps_ % options_.save_every == 0 || steps_ == options_.steps;
    if (!due || options_.checkpoint.empty()) continue;
    saving.wait().value();  // the one before
    if (pipeline_)
      saving = io::save_async(options_.checkpoint, Trained{decoder_of(model()), options_.context});
    else
      saving = io::save_async(options_.checkpoint,
                              Checkpoint{state_.model, state_.adam, options_.context});
  }
  saving.wait().value();
  return losses;
}

Result<void> Trainer::resume() {
  Checkpoint like{state_.model, state_.adam};
  MESHARD_ASSIGN_OR_RETURN(Checkpoint found, io::restore(options_.checkpoint, like));
  state_ = {found.model, found.adam};
  steps_ = state_.adam.steps.item<std::int32_t>();
  return {};
}

double Trainer::held_back_loss(std::int64_t batches) const {
  std::int64_t rows = static_cast<std::int64_t>(text_.held_back.size()) / options_.context;
  std::int64_t all = std::max<std::int64_t>(rows / options_.batch, 1);
  if (batches == 0 || batches > all) batches = all;
  double total = 0;
  const Gpt whole = model();
  for (std::int64_t i = 0; i < batches; ++i) {
    // Spreads the batches over the whole text.
    std::int64_t first = i * all / batches * options_.batch;
    Tensor loss = loss_(
        whole, windows(windows_in_order(text_.held_back, options_.batch, options_.context, first)));
    total += gather(loss).item<float>();  // the model of a pipeline is in some processes only
  }
  return total / static_cast<double>(batches);
}

std::string Trainer::module() const {
  Tensor batch = windows(
      std::vector<std::int32_t>(static_cast<std::size_t>(options_.batch * (options_.context + 1))));
  return module_text(step_, state_, batch);
}

}  // namespace gpt

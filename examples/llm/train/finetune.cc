// Tested in tests/e2e/llm_test.cc.
#include "examples/llm/train/finetune.h"

#include <algorithm>

namespace llm {

using namespace meshard;

namespace {

optim::Schedule rate_of(const FinetuneOptions& o) {
  optim::Schedule after =
      o.constant_rate ? optim::Schedule(o.rate)
                      : optim::linear(o.rate, 0, std::max<std::int64_t>(1, o.steps - o.warm_up));
  return o.warm_up > 0 ? optim::warm_up(o.rate, o.warm_up, after) : after;
}

Tensor loss_of_trained(const Trained& trained, const std::optional<Model>& frozen,
                       const Config& config, const Tensor& tokens, const Tensor& labels,
                       const nn::AxisRules& rules, const FinetuneOptions& options) {
  const Model& model = trained.model ? *trained.model : *frozen;
  std::optional<Adaptation> adaptation;
  if (trained.adapters) adaptation.emplace(Adaptation{*trained.adapters, options.adapter->scale()});
  return loss_of(model, config, tokens, labels, rules, adaptation, options.recompute);
}

}  // namespace

Tensor loss_of(const Model& model, const Config& config, const Tensor& tokens, const Tensor& labels,
               const nn::AxisRules& rules, const std::optional<Adaptation>& adaptation,
               bool recompute) {
  Tensor logits = logits_of(model, config, tokens, rules, adaptation, recompute);
  std::int64_t length = tokens.dim(1);
  return cross_entropy(index(logits, {whole, range(0, length - 1)}),
                       index(labels, {whole, range(1, length)}), {.ignored = kIgnored});
}

Result<Finetuning> Finetuning::create(Model model, const Config& config, const nn::AxisRules& rules,
                                      const FinetuneOptions& options, std::vector<Sample> samples) {
  auto wrong = [](const std::string& what) {
    return Error(ErrorCode::kInvalidArgument, "[llm.finetune] " + what);
  };
  if (config.attention_dropout != 0)
    return wrong(
        cat("attention_dropout is ", config.attention_dropout, " in config.json; supported: 0"));
  if (config.quantization.method != Quantization::Method::kNone && !options.adapter)
    return wrong("quantized weights cannot be trained: train adapters");
  if (options.rows < 1 || options.length < 2 || options.steps < 0 || options.save_every < 1)
    return wrong(cat("rows ", options.rows, ", length ", options.length, ", steps ", options.steps,
                     " and save_every ", options.save_every,
                     " must be positive, and the length at least 2"));
  if (options.warm_up < 0 || options.warm_up > options.steps)
    return wrong(cat("a warm-up of ", options.warm_up, " of ", options.steps, " steps"));
  Trained trained;
  if (!options.adapter) {
    trained.model = std::move(model);
    return Finetuning(std::nullopt, config, rules, options, std::move(samples), std::move(trained));
  }
  Result<Adapters> adapters =
      options.adapter_from.empty()
          ? make_adapters(config, *options.adapter, rules, static_cast<std::int64_t>(options.seed))
          : load_adapters(options.adapter_from, config, *options.adapter, rules);
  if (!adapters) return adapters.error();
  trained.adapters = *std::move(adapters);
  return Finetuning(std::move(model), config, rules, options, std::move(samples),
                    std::move(trained));
}

Finetuning::Finetuning(std::optional<Model> frozen, const Config& config,
                       const nn::AxisRules& rules, const FinetuneOptions& options,
                       std::vector<Sample> samples, Trained trained)
    : config_(config),
      rules_(rules),
      options_(options),
      samples_(std::move(samples)),
      frozen_(std::move(frozen)),
      optimizer_{.rate = rate_of(options), .weight_decay = options.weight_decay, .decay_rank = 2},
      step_(jit(Step([config, rules, options, adam = optimizer_](
                         const TrainingState& state, const std::optional<Model>& fixed,
                         const Tensor& tokens, const Tensor& labels) {
                  auto loss_at = [&](const Trained& at) {
                    return loss_of_trained(at, fixed, config, tokens, labels, rules, options);
                  };
                  auto [loss, raw] = value_and_grad(loss_at)(state.trained);
                  auto [gradients, norm] = optim::clip_by_global_norm(raw, options.clip);
                  auto [next, adam_state] =
                      optim::update(adam, state.trained, gradients, state.adam);
                  return std::pair(TrainingState{next, adam_state}, StepMetrics{loss, norm});
                }),
                {.name = "finetune_step", .donate = {0}})) {
  state_.adam = optim::init(optimizer_, trained);
  state_.trained = std::move(trained);
}

std::pair<Tensor, Tensor> Finetuning::batch(std::int64_t step) const {
  Batch of_step = batch_of_step(samples_, options_.rows, options_.length, options_.seed, step);
  auto sent = [&](std::vector<std::int32_t> values) {
    return rules_.mark(from_host(std::move(values), {options_.rows, options_.length}), P("batch"));
  };
  return {sent(std::move(of_step.tokens)), sent(std::move(of_step.labels))};
}

void Finetuning::run(const Progress& progress) {
  io::Saving saving;
  while (steps_ < options_.steps) {
    auto [tokens, labels] = batch(steps_);
    auto [next, metrics] = step_(state_, frozen_, tokens, labels);
    state_ = std::move(next);
    double rate = gather(optimizer_.rate(full({}, static_cast<std::int32_t>(steps_), DType::i32)))
                      .item<float>();
    ++steps_;
    if (progress) progress(steps_, metrics.loss.item<float>(), rate, metrics.norm.item<float>());
    bool due = steps_ % options_.save_every == 0 || steps_ == options_.steps;
    if (!due || options_.checkpoint.empty()) continue;
    saving.wait().value();  // the one before
    saving = io::save_async(options_.checkpoint, state_);
  }
  saving.wait().value();
}

Result<void> Finetuning::resume() {
  MESHARD_ASSIGN_OR_RETURN(state_, io::restore(options_.checkpoint, state_));
  steps_ = state_.adam.steps.item<std::int32_t>();
  return {};
}

Trained Finetuning::gradients() const {
  auto [tokens, labels] = batch(steps_);
  auto at = jit([&](const Trained& trained, const std::optional<Model>& fixed, const Tensor& x,
                    const Tensor& y) {
    return grad([&](const Trained& of) {
      return loss_of_trained(of, fixed, config_, x, y, rules_, options_);
    })(trained);
  });
  return at(state_.trained, frozen_, tokens, labels);
}

}  // namespace llm

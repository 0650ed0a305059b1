#include "examples/digits/train.h"

#include <utility>

#include "examples/digits/pipeline.h"

namespace digits {

using namespace meshard;

namespace {

const optim::Adam kAdam{.rate = 2e-3, .epsilon = 1e-6, .form = optim::AdamForm::kEfficient};

}  // namespace

Training make_training(const Mesh& mesh, std::uint64_t seed) {
  Classifier model = make_classifier(mesh, seed);
  return {model, optim::init(kAdam, model)};
}

std::pair<Training, Tensor> train_step(Training state, Tensor images, Tensor labels) {
  auto [loss, gradient] = value_and_grad(loss_of)(state.model, images, labels);
  auto [model, adam] = optim::update(kAdam, state.model, gradient, state.adam);
  return {{model, adam}, loss};
}

std::pair<Tensor, Tensor> to_devices(Digits digits, const Mesh& mesh) {
  std::int64_t count = digits.size();
  return {
      mark_sharding(from_host(std::move(digits.pixels), {count, kPixels}), mesh, P("data", none)),
      mark_sharding(from_host(std::move(digits.labels), {count}), mesh, P("data"))};
}

Trainer::Trainer(const Mesh& mesh, std::uint64_t seed)
    : mesh_(mesh),
      seed_(seed),
      state_(make_training(mesh, seed)),
      step_(jit(&train_step, {.name = "train_step", .donate = {0}})) {}

Trainer::Trainer(const Options& options) : Trainer(options.mesh(), options.seed) {
  if (options.stages == 1) return;
  microbatches_ = options.microbatches;
  pipeline_ = make_pipeline(state_.model, options, {.optimizer = kAdam});
  state_ = {};
}

Classifier Trainer::model() const { return pipeline_ ? joined(*pipeline_) : state_.model; }

double Trainer::train_on(const Digits& batch) {
  // Processes without a stage report the loss, too.
  if (pipeline_)
    return gather(pipeline_->step(microbatches_of(batch, microbatches_))).item<float>();
  auto [images, labels] = to_devices(batch, mesh_);
  auto [next, loss] = step_(state_, images, labels);
  state_ = std::move(next);
  return loss.item<float>();
}

std::vector<double> Trainer::run(const Digits& digits, std::int64_t steps,
                                 const std::function<void(std::int64_t, double)>& progress) {
  Batches batches(digits, kBatch, seed_);
  std::vector<double> losses;
  for (std::int64_t i = 1; i <= steps; ++i) {
    losses.push_back(train_on(batches.next()));
    if (progress) progress(i, losses.back());
  }
  return losses;
}

double Trainer::accuracy(const Digits& digits) const {
  auto right = jit([](Classifier model, Tensor images, Tensor labels) {
    Tensor answers = argmax(logits_of(model, images), -1);
    return mean(astype(equal(astype(answers, DType::i32), labels), DType::f32));
  });
  auto [images, labels] = to_devices(digits, mesh_);
  return gather(right(model(), images, labels)).item<float>();
}

}  // namespace digits

#include "examples/digits/train.h"

#include <utility>

namespace digits {

using namespace meshard;

namespace {

constexpr std::int64_t kBatch = 128;
constexpr float kRate = 2e-3f, kBeta1 = 0.9f, kBeta2 = 0.999f, kEpsilon = 1e-6f;

// A tensor like each of `model`, of zeros, lying in the same way.
Perceptron zeros_as(const Perceptron& model) {
  std::vector<Tensor> zeros;
  for (const Tensor& weight : structure::tensors(model))
    zeros.push_back(mark_sharding(from_host(HostArray::zeros(weight.type())), *weight.sharding()));
  return structure::with_tensors(model, zeros);
}

}  // namespace

Training make_training(const Mesh& mesh, std::uint64_t seed) {
  Training state;
  state.model = make_perceptron(mesh, seed);
  state.mean = zeros_as(state.model);
  state.square = zeros_as(state.model);
  state.steps = mark_sharding(from_host(HostArray::scalar(0.0f)), mesh, P());
  return state;
}

std::pair<Training, Tensor> train_step(Training state, Tensor images, Tensor labels) {
  auto [loss, gradient] = value_and_grad(loss_of)(state.model, images, labels);

  Training next = state;
  next.steps = state.steps + 1;
  Tensor rate = kRate * sqrt(1 - pow(kBeta2, next.steps)) / (1 - pow(kBeta1, next.steps));

  std::vector<Tensor> weights = structure::tensors(state.model);
  std::vector<Tensor> means = structure::tensors(state.mean);
  std::vector<Tensor> squares = structure::tensors(state.square);
  std::vector<Tensor> gradients = structure::tensors(gradient);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    means[i] = kBeta1 * means[i] + (1 - kBeta1) * gradients[i];
    squares[i] = kBeta2 * squares[i] + (1 - kBeta2) * square(gradients[i]);
    weights[i] = weights[i] - rate * means[i] / (sqrt(squares[i]) + kEpsilon);
  }
  next.model = structure::with_tensors(state.model, weights);
  next.mean = structure::with_tensors(state.mean, means);
  next.square = structure::with_tensors(state.square, squares);
  return {next, loss};
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

std::vector<double> Trainer::run(const Digits& digits, std::int64_t steps,
                                 const std::function<void(std::int64_t, double)>& progress) {
  Batches batches(digits, kBatch, seed_);
  std::vector<double> losses;
  for (std::int64_t i = 1; i <= steps; ++i) {
    auto [images, labels] = to_devices(batches.next(), mesh_);
    auto [next, loss] = step_(state_, images, labels);
    state_ = std::move(next);
    losses.push_back(loss.item<float>());
    if (progress) progress(i, losses.back());
  }
  return losses;
}

double Trainer::accuracy(const Digits& digits) const {
  auto right = jit([](Perceptron model, Tensor images, Tensor labels) {
    Tensor answers = argmax(logits_of(model, images), -1);
    return mean(astype(equal(astype(answers, DType::i32), labels), DType::f32));
  });
  auto [images, labels] = to_devices(digits, mesh_);
  return right(state_.model, images, labels).item<float>();
}

}  // namespace digits

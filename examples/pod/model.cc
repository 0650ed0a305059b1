#include "examples/pod/model.h"

#include <cmath>

namespace pod {

using namespace meshard;

namespace {

constexpr float kRate = 3e-4f, kBeta1 = 0.9f, kBeta2 = 0.95f, kEpsilon = 1e-8f;
constexpr double kTheta = 500000.0;  // base of the rotary embeddings

Model make_model(const Sizes& s, const Make& make, bool careless) {
  auto weight = [&](Shape shape, PartitionSpec spec) { return make(shape, DType::f32, spec); };
  std::int64_t d = s.width, h = s.head_width();
  Model model;
  model.embedding = weight({s.vocabulary, d}, P("model", "data"));
  // The layers are stacked; every device has its part of each layer.
  auto of_layers = [&](Shape one, const PartitionSpec& spec) {
    Dimensions sizes{s.layers};
    for (std::int64_t size : one) sizes.push_back(size);
    std::vector<DimensionSpec> dimensions{none};
    for (const DimensionSpec& each : spec.dimensions()) dimensions.push_back(each);
    return weight(Shape(std::move(sizes)), PartitionSpec(std::move(dimensions)));
  };
  model.layers.stacked = {
      .attention_norm = of_layers({d}, P(none)),
      .query = of_layers({d, s.heads, h}, P("data", "model", none)),
      .key = of_layers({d, s.key_heads, h}, P("data", "model", none)),
      .value = of_layers({d, s.key_heads, h}, P("data", "model", none)),
      .output = of_layers({s.heads, h, d}, P("model", none, "data")),
      .norm = of_layers({d}, P(none)),
      .gate = of_layers({d, s.hidden}, P("data", "model")),
      .up = of_layers({d, s.hidden}, P("data", "model")),
      .down = of_layers({s.hidden, d}, careless ? P("data", "model") : P("model", "data")),
  };
  model.norm = weight({d}, P(none));
  model.head = weight({d, s.vocabulary}, P("data", "model"));
  return model;
}

Tensor rms_norm(const Tensor& x, const Tensor& scale) {
  Tensor wide = astype(x, DType::f32);
  Tensor size = rsqrt(mean(square(wide), {-1}, true) + 1e-5);
  return astype(wide * size * scale, x.dtype());
}

// Rotary embeddings (Su et al., RoFormer, 2021): the angle grows with the position.
Tensor rotate(const Tensor& x) {
  std::int64_t places = x.shape()[1], half = x.shape()[3] / 2;
  Tensor frequency = exp(astype(arange(half), DType::f32) * (-std::log(kTheta) / double(half)));
  Tensor angle = reshape(astype(arange(places), DType::f32), {places, 1}) * frequency;
  Tensor c = reshape(cos(angle), {places, 1, half}), s = reshape(sin(angle), {places, 1, half});
  const Shape& shape = x.shape();
  Tensor wide = astype(x, DType::f32);
  Tensor a = slice(wide, {0, 0, 0, 0}, {shape[0], shape[1], shape[2], half});
  Tensor b = slice(wide, {0, 0, 0, half}, {shape[0], shape[1], shape[2], 2 * half});
  return astype(concat({a * c - b * s, a * s + b * c}, -1), x.dtype());
}

Tensor attention(const Tensor& x, const Layer& w, const Sizes& s) {
  auto half = [](const Tensor& t) { return astype(t, DType::bf16); };
  Tensor q = rotate(einsum("btd,dhk->bthk", {x, half(w.query)}));
  Tensor k = rotate(einsum("btd,dgk->btgk", {x, half(w.key)}));
  Tensor v = einsum("btd,dgk->btgk", {x, half(w.value)});
  std::int64_t group = s.heads / s.key_heads;
  q = reshape(q, {s.batch, s.sequence, s.key_heads, group, s.head_width()});
  Tensor scores = astype(einsum("btghk,bsgk->bghts", {q, k}), DType::f32);
  scores = scores / std::sqrt(double(s.head_width()));
  Tensor seen = tril(ones({s.sequence, s.sequence}, DType::f32));
  Tensor weights = softmax(where(seen > 0, scores, -1e30), -1);
  Tensor read = einsum("bghts,bsgk->btghk", {half(weights), v});
  read = reshape(read, {s.batch, s.sequence, s.heads, s.head_width()});
  return einsum("bthk,hkd->btd", {read, half(w.output)});
}

Tensor mlp(const Tensor& x, const Layer& w) {
  auto half = [](const Tensor& t) { return astype(t, DType::bf16); };
  return matmul(silu(matmul(x, half(w.gate))) * matmul(x, half(w.up)), half(w.down));
}

}  // namespace

Training make_training(const Sizes& sizes, const Make& make, bool careless) {
  return {.model = make_model(sizes, make, careless),
          .mean = make_model(sizes, make, careless),
          .square = make_model(sizes, make, careless),
          .steps = make({}, DType::f32, P())};
}

Tensor loss_of(const Model& model, const Tensor& tokens, const Tensor& targets, const Mesh& mesh,
               const Sizes& sizes) {
  auto split = [&](const Tensor& x) { return mark_sharding(x, mesh, P("data", none, none)); };
  Tensor x = split(take(astype(model.embedding, DType::bf16), tokens));
  for (const Layer& layer : model.layers) {
    x = split(x + attention(rms_norm(x, layer.attention_norm), layer, sizes));
    x = split(x + mlp(rms_norm(x, layer.norm), layer));
  }
  Tensor logits = matmul(rms_norm(x, model.norm), astype(model.head, DType::bf16));
  return cross_entropy(astype(logits, DType::f32), targets);
}

std::pair<Training, Tensor> train_step(const Training& state, const Tensor& tokens,
                                       const Tensor& targets, const Mesh& mesh,
                                       const Sizes& sizes) {
  auto loss_at = [&](const Model& model) { return loss_of(model, tokens, targets, mesh, sizes); };
  auto [loss, gradient] = value_and_grad(loss_at)(state.model);
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

}  // namespace pod

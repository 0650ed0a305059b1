#include "bench/gpt_model.h"

#include <cmath>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/definition/bodies.h"

namespace meshard::bench {
namespace {

Tensor normalized(const Tensor& x, const Tensor& scale, const Tensor& shift) {
  Tensor center = mean(x, -1, true);
  Tensor variance = mean(square(x - center), -1, true);
  return (x - center) * rsqrt(variance + 1e-5f) * scale + shift;
}

Tensor attention(const GptBlock& block, const Tensor& h, std::int64_t per_head) {
  Tensor q = einsum("btd,dhk->bhtk", {h, block.query});
  Tensor k = einsum("btd,dhk->bhtk", {h, block.key});
  Tensor v = einsum("btd,dhk->bhtk", {h, block.value});
  Tensor scores = einsum("bhtk,bhsk->bhts", {q, k}) * (1.0f / std::sqrt(float(per_head)));
  std::int64_t length = h.dim(1);
  Tensor mask =
      greater_equal(iota(DType::i32, {length, length}, 0), iota(DType::i32, {length, length}, 1));
  scores = where(mask, scores, -1e30f);
  Tensor weights = softmax(scores);
  return einsum("bthk,hkd->btd", {einsum("bhts,bhsk->bthk", {weights, v}), block.out});
}

Tensor bump(const Tensor& u) {
  return 0.5f * u * (1.0f + tanh(0.7978845608028654f * (u + 0.044715f * (u * u * u))));
}

Tensor loss_of(const GptSizes& sizes, const Mesh& mesh, const Gpt& gpt, const Tensor& tokens,
               const Tensor& targets) {
  auto spread = [&](const Tensor& x) { return mark_sharding(x, mesh, P("dp", none, none)); };
  Tensor x = spread(take(gpt.words, tokens, 0) + gpt.positions);
  auto layer = [&](const GptBlock& block, const Tensor& before) {
    Tensor h = normalized(before, block.norm1_scale, block.norm1_shift);
    Tensor y = spread(before + attention(block, h, sizes.width / sizes.heads));
    h = normalized(y, block.norm2_scale, block.norm2_shift);
    return spread(y + matmul(bump(matmul(h, block.up) + block.up_bias), block.down) +
                  block.down_bias);
  };
  if (sizes.form == LayerForm::kRepeat)
    x = repeat(gpt.blocks[0], x, layer);
  else if (sizes.form == LayerForm::kLayers)
    for (const GptBlock& block : nn::Layers<GptBlock>{gpt.blocks[0]}) x = layer(block, x);
  else if (sizes.form == LayerForm::kLayersCheckpoint)
    for (const GptBlock& block : nn::Layers<GptBlock>{gpt.blocks[0]})
      x = checkpoint(layer)(block, x);
  else
    for (const GptBlock& block : gpt.blocks) x = layer(block, x);
  Tensor logits = matmul(normalized(x, gpt.norm_scale, gpt.norm_shift), gpt.head);
  return cross_entropy(logits, targets);
}

}  // namespace

std::pair<GptState, Tensor> gpt_step(const GptSizes& sizes, const Mesh& mesh, const GptState& state,
                                     const Tensor& tokens, const Tensor& targets) {
  constexpr float kRate = 1e-3f, kBeta1 = 0.9f, kBeta2 = 0.999f, kEpsilon = 1e-8f;
  auto [loss, gradient] = value_and_grad(
      [&](const Gpt& gpt) { return loss_of(sizes, mesh, gpt, tokens, targets); })(state.model);
  Tensor steps = state.steps + 1;
  Tensor count = astype(steps, DType::f32);
  Tensor rate = kRate * sqrt(1.0f - pow(kBeta2, count)) / (1.0f - pow(kBeta1, count));
  std::vector<Tensor> weights = structure::tensors(state.model);
  std::vector<Tensor> means = structure::tensors(state.mean);
  std::vector<Tensor> squares = structure::tensors(state.square);
  std::vector<Tensor> gradients = structure::tensors(gradient);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    means[i] = kBeta1 * means[i] + (1 - kBeta1) * gradients[i];
    squares[i] = kBeta2 * squares[i] + (1 - kBeta2) * gradients[i] * gradients[i];
    weights[i] = weights[i] - rate * means[i] / (sqrt(squares[i]) + kEpsilon);
  }
  GptState next{structure::with_tensors(state.model, weights),
                structure::with_tensors(state.mean, means),
                structure::with_tensors(state.square, squares), steps};
  return {next, loss};
}

Program recorded_step(const GptSizes& sizes) {
  Mesh mesh({{"dp", 2}, {"tp", 4}});
  internal::TraceScope scope;
  std::vector<Value> parameters;
  auto parameter = [&](const TensorType& type, const PartitionSpec& spec) {
    Tensor tensor =
        make_parameter(type, Sharding(mesh, spec, static_cast<std::size_t>(type.rank())), {});
    parameters.push_back(tensor.value());
    return tensor;
  };
  // Repeated layers have stacked parameters; the first five parameters belong to no layer.
  bool stacked = sizes.form != LayerForm::kPlain;
  GptSizes made_sizes = sizes;
  if (stacked) made_sizes.layers = 1;
  auto made = [&] {
    int count = 0;
    return make_gpt(made_sizes, [&](const TensorType& type, const PartitionSpec& spec) {
      if (!stacked || count++ < 5) return parameter(type, spec);
      std::vector<std::int64_t> sizes_of_all{sizes.layers};
      for (std::int64_t extent : type.shape) sizes_of_all.push_back(extent);
      Sharding of_one(mesh, spec, static_cast<std::size_t>(type.rank()));
      return parameter({type.dtype, Shape(sizes_of_all)}, stacked_sharding(of_one).spec());
    });
  };
  GptState state;
  state.model = made();
  state.mean = made();
  state.square = made();
  state.steps = parameter({DType::i32, {}}, P());
  Tensor tokens = parameter({DType::i32, {sizes.batch, sizes.length}}, P("dp", none));
  Tensor targets = parameter({DType::i32, {sizes.batch, sizes.length}}, P("dp", none));
  Program program;
  for (std::uint32_t i = 0; i + 2 < parameters.size(); ++i) program.donated.push_back(i);
  auto [next, loss] = gpt_step(sizes, mesh, state, tokens, targets);
  std::vector<Value> results;
  for (const Tensor& tensor : structure::tensors(next)) results.push_back(tensor.value());
  results.push_back(loss.value());
  program.graph = Graph::build(parameters, results, scope.trace());
  return program;
}

}  // namespace meshard::bench

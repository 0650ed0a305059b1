#include "examples/resnet/resnet.h"

namespace resnet {
namespace {

const optim::Sgd kSgd{.rate = 0.01, .momentum = 0.9};
constexpr std::int64_t kStages = 4, kBlocksPerStage = 2;

ConvNorm make_conv_norm(nn::Maker& make, std::int64_t window, std::int64_t in, std::int64_t out,
                        const nn::Initializer& scale = nn::init::ones()) {
  ConvNorm layer;
  layer.conv = nn::make_conv(make, {window, window}, in, out,
                             {.bias = false, .kernel = nn::init::he_normal()});
  layer.norm.scale = make({out}, P("filters"), scale);
  layer.norm.bias = make({out}, P("filters"), nn::init::zeros());
  return layer;
}

// The convolution of x and its normalization; writes the new statistics.
Tensor normalized(const ConvNorm& layer, const Tensor& x, std::int64_t stride,
                  nn::BatchStatistics& state, bool training) {
  Tensor y = nn::conv(layer.conv, x, {.strides = {stride}, .padding = Padding::kSame});
  auto [result, next] = nn::batch_norm(layer.norm, state, y, training, {.momentum = 0.9});
  state = next;
  return result;
}

Tensor block_result(const Block& block, const Tensor& x, BlockState& state, bool training) {
  std::int64_t stride = block.first.conv.kernel.dim(2) == block.first.conv.kernel.dim(3) ? 1 : 2;
  Tensor y = relu(normalized(block.first, x, stride, state.first, training));
  y = normalized(block.second, y, 1, state.second, training);
  if (!block.shortcut) return relu(x + y);
  return relu(normalized(*block.shortcut, x, stride, *state.shortcut, training) + y);
}

}  // namespace

std::pair<ResNet, State> make_resnet(nn::Maker& make, const Sizes& sizes) {
  ResNet model;
  State state;
  model.stem = make_conv_norm(make, 7, 3, sizes.width);
  state.stem = nn::make_batch_statistics(make, sizes.width);
  std::int64_t in = sizes.width;
  for (std::int64_t i = 0; i < kStages * kBlocksPerStage; ++i) {
    std::int64_t out = sizes.width << (i / kBlocksPerStage);
    Block block;
    BlockState own;
    block.first = make_conv_norm(make, 3, in, out);
    // Blocks begin as their shortcuts (Goyal et al., 2017).
    block.second = make_conv_norm(make, 3, out, out, nn::init::zeros());
    own.first = nn::make_batch_statistics(make, out);
    own.second = nn::make_batch_statistics(make, out);
    if (in != out) {
      block.shortcut = make_conv_norm(make, 1, in, out);
      own.shortcut = nn::make_batch_statistics(make, out);
    }
    model.blocks.push_back(block);
    state.blocks.push_back(own);
    in = out;
  }
  model.head = nn::make_linear(make, in, sizes.classes, {.in = "channels", .out = "classes"});
  return {model, state};
}

std::pair<Tensor, State> logits_of(const ResNet& model, const State& state, const Tensor& images,
                                   bool training) {
  State next = state;
  Tensor x = relu(normalized(model.stem, images, 2, next.stem, training));
  x = max_pool(x, {3}, {.strides = {2}, .padding = Padding::kSame});
  for (std::size_t i = 0; i < model.blocks.size(); ++i)
    x = block_result(model.blocks[i], x, next.blocks[i], training);
  return {nn::linear(model.head, mean(x, {1, 2})), next};
}

Training make_training(const nn::AxisRules& rules, std::int64_t seed, const Sizes& sizes) {
  auto [model, state] =
      nn::create(rules, seed, [&](nn::Maker& make) { return make_resnet(make, sizes); });
  return {model, state, optim::init(kSgd, model)};
}

std::pair<Training, Tensor> train_step(const Training& training, const Tensor& images,
                                       const Tensor& labels) {
  auto loss_of = [&](const ResNet& model) {
    auto [logits, state] = logits_of(model, training.state, images, true);
    return std::pair(cross_entropy(logits, labels), state);
  };
  auto [result, gradient] = value_and_grad(loss_of)(training.model);
  auto [model, sgd] = optim::update(kSgd, training.model, gradient, training.sgd);
  return {{model, result.second, sgd}, result.first};
}

std::pair<Tensor, Tensor> batch_of(const nn::AxisRules& rules, const Tensor& key, std::int64_t step,
                                   std::int64_t count, std::int64_t size, std::int64_t classes) {
  std::vector<std::int32_t> numbers;
  for (std::int64_t i = 0; i < count; ++i)
    numbers.push_back(static_cast<std::int32_t>((7 * i + 3 * step) % classes));
  Tensor labels = rules.mark(from_host(std::move(numbers), {count}), P("batch"));
  Tensor patterns = random::normal(random::fold_in(key, 0), {classes, size, size, 3});
  Tensor noise = random::normal(random::fold_in(key, step), {count, size, size, 3});
  return {rules.mark(noise + take(patterns, labels), P("batch")), labels};
}

}  // namespace resnet

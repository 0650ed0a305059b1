// ResNet-18 (He et al.: Deep Residual Learning for Image Recognition, 2016): parameters, running
// statistics and a training step.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "meshard/meshard.h"
#include "meshard/nn/all.h"

namespace resnet {

using namespace meshard;

/// A convolution without bias, and the normalization of its result.
struct ConvNorm {
  nn::Conv conv;
  nn::BatchNorm norm;
  MESHARD_FIELDS(conv, norm)
};

/// Two convolutions, and the way around them: the identity, or a convolution of 1 x 1 where the
/// size changes.
struct Block {
  ConvNorm first, second;
  std::optional<ConvNorm> shortcut;
  MESHARD_FIELDS(first, second, shortcut)
};

/// The parameters.
struct ResNet {
  ConvNorm stem;
  std::vector<Block> blocks;
  nn::Linear head;
  MESHARD_FIELDS(stem, blocks, head)
};

/// The running statistics of a block's normalizations.
struct BlockState {
  nn::BatchStatistics first, second;
  std::optional<nn::BatchStatistics> shortcut;
  MESHARD_FIELDS(first, second, shortcut)
};

/// The running statistics of all normalizations.
struct State {
  nn::BatchStatistics stem;
  std::vector<BlockState> blocks;
  MESHARD_FIELDS(stem, blocks)
};

struct Sizes {
  std::int64_t width = 64;  ///< the filters of the first stage; each stage has twice as many
  std::int64_t classes = 10;
};

/// Creates parameters and state. Names of dimensions are "channels" and "filters".
std::pair<ResNet, State> make_resnet(nn::Maker& make, const Sizes& sizes);

/// The logits [batch, classes] of images [batch, height, width, 3], and the new state.
std::pair<Tensor, State> logits_of(const ResNet& model, const State& state, const Tensor& images,
                                   bool training);

/// What a step changes.
struct Training {
  ResNet model;
  State state;
  optim::SgdState<ResNet> sgd;
  MESHARD_FIELDS(model, state, sgd)
};
Training make_training(const nn::AxisRules& rules, std::int64_t seed, const Sizes& sizes);

/// One step of SGD with momentum: the next training, and the loss before the step.
std::pair<Training, Tensor> train_step(const Training& training, const Tensor& images,
                                       const Tensor& labels);

/// The synthetic images of a step and their labels: a pattern for each class, and noise.
std::pair<Tensor, Tensor> batch_of(const nn::AxisRules& rules, const Tensor& key, std::int64_t step,
                                   std::int64_t count, std::int64_t size, std::int64_t classes);

}  // namespace resnet

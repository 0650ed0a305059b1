// A modern decoder-only transformer and one training step with Adam. It has grouped-query attention
// with rotary embeddings, gated MLPs and RMS norms.
#pragma once
#include <cstdint>
#include <functional>
#include <utility>

#include "meshard/meshard.h"

namespace pod {

/// The sizes of the model and the batch. The default is Llama 3 8B with 4 instead of 32 layers.
struct Sizes {
  std::int64_t layers = 4;
  std::int64_t width = 4096, heads = 32, key_heads = 8, hidden = 14336, vocabulary = 128256;
  std::int64_t batch = 16, sequence = 4096;
  std::int64_t head_width() const { return width / heads; }
};

struct Layer {
  meshard::Tensor attention_norm, query, key, value, output;
  meshard::Tensor norm, gate, up, down;
  MESHARD_FIELDS(attention_norm, query, key, value, output, norm, gate, up, down)
};

struct Model {
  meshard::Tensor embedding;
  meshard::nn::Layers<Layer> layers;
  meshard::Tensor norm, head;
  MESHARD_FIELDS(embedding, layers, norm, head)
};

/// Parameters and Adam's state for each.
struct Training {
  Model model, mean, square;
  meshard::Tensor steps;
  MESHARD_FIELDS(model, mean, square, steps)
};

/// Creates one tensor with a shape, type and sharding.
using Make = std::function<meshard::Tensor(meshard::Shape, meshard::DType, meshard::PartitionSpec)>;

/// Creates the training state. Weights are sharded over "model" by heads and hidden values, and
/// over "data" along another dimension (fully sharded data parallelism). With `careless`, the
/// second weight of each layer's MLP is sharded by columns like the first: a mistake that works,
/// but is slow.
Training make_training(const Sizes& sizes, const Make& make, bool careless = false);

/// The mean cross-entropy of the next tokens. `tokens` and `targets` are i32[batch, sequence],
/// sharded over "data".
meshard::Tensor loss_of(const Model& model, const meshard::Tensor& tokens,
                        const meshard::Tensor& targets, const meshard::Mesh& mesh,
                        const Sizes& sizes);

/// One training step: the new state, and the loss before the step.
std::pair<Training, meshard::Tensor> train_step(const Training& state,
                                                const meshard::Tensor& tokens,
                                                const meshard::Tensor& targets,
                                                const meshard::Mesh& mesh, const Sizes& sizes);

}  // namespace pod

// A decoder-only transformer of today's shape: grouped-query attention with rotary positions, gated
// perceptrons, RMS norms; and one step of its training with Adam.
#pragma once
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "meshard/meshard.h"

namespace pod {

/// What the program is a program of. The default is an eighth of Llama 3 8B in each direction but
/// the number of layers.
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
  std::vector<Layer> layers;
  meshard::Tensor norm, head;
  MESHARD_FIELDS(embedding, layers, norm, head)
};

/// Parameters and what Adam remembers of each.
struct Training {
  Model model, mean, square;
  meshard::Tensor steps;
  MESHARD_FIELDS(model, mean, square, steps)
};

/// Makes one tensor of a shape and type that lies on the devices as the spec says.
using Make = std::function<meshard::Tensor(meshard::Shape, meshard::DType, meshard::PartitionSpec)>;

/// Weights are split over "model" by heads and hidden values, and over "data" along the other
/// dimension (fully sharded data parallelism). With `careless` the second weight of each layer's
/// perceptron is split by columns too, as if it were the first: a mistake that runs, slowly.
Training make_training(const Sizes& sizes, const Make& make, bool careless = false);

/// The mean cross-entropy of the next tokens. Both i32[batch, sequence], split over "data".
meshard::Tensor loss_of(const Model& model, const meshard::Tensor& tokens,
                        const meshard::Tensor& targets, const meshard::Mesh& mesh,
                        const Sizes& sizes);

/// One step: the new state, and the loss before it.
std::pair<Training, meshard::Tensor> train_step(const Training& state,
                                                const meshard::Tensor& tokens,
                                                const meshard::Tensor& targets,
                                                const meshard::Mesh& mesh, const Sizes& sizes);

}  // namespace pod

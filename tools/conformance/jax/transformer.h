// The transformer of JAX's cases, built with nn/ and trained with optim/.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "meshard/meshard.h"
#include "meshard/nn/nn.h"
#include "meshard/optim/optim.h"

namespace meshard::conformance {

struct TransformerBlock {
  nn::LayerNorm norm1;
  nn::Attention attention;
  nn::LayerNorm norm2;
  nn::Mlp mlp;
  MESHARD_FIELDS(norm1, attention, norm2, mlp)
};

struct Transformer {
  nn::Embedding words;
  Tensor positions;
  std::vector<TransformerBlock> blocks;
  nn::LayerNorm norm;
  nn::Linear head;
  MESHARD_FIELDS(words, positions, blocks, norm, head)
};

/// The same with stacked layers: dimension 0 of each tensor of `blocks` is the layer.
struct RolledTransformer {
  nn::Embedding words;
  Tensor positions;
  TransformerBlock blocks;
  nn::LayerNorm norm;
  nn::Linear head;
  MESHARD_FIELDS(words, positions, blocks, norm, head)
};
/// Stacked tensors have the sharding of their layers.
RolledTransformer rolled(const Transformer& model);

/// A transformer with undefined tensors and this many layers.
Transformer empty_transformer(std::size_t layers);

/// Its tensors by their names in the cases: `tok`, `blocks.0.wq`.
std::map<std::string, Tensor*> tensors_by_name(Transformer& model);

/// The mean cross-entropy; tokens and targets are i32 [batch, time]. If there is a mesh,
/// activations are marked so that "dp" splits the batch.
Tensor transformer_loss(const Transformer& model, const Tensor& tokens, const Tensor& targets,
                        const nn::AxisRules& rules);
/// The same, with repeat() over the layers.
Tensor transformer_loss(const RolledTransformer& model, const Tensor& tokens, const Tensor& targets,
                        const nn::AxisRules& rules);

/// Trains `model` for `steps` steps on one batch. Returns the loss before each step, and after the
/// last one if `with_last`.
std::vector<double> train_transformer(Transformer& model, const Tensor& tokens,
                                      const Tensor& targets, const nn::AxisRules& rules,
                                      const optim::Adam& adam, int steps, bool with_last);
std::vector<double> train_transformer(Transformer& model, const Tensor& tokens,
                                      const Tensor& targets, const nn::AxisRules& rules,
                                      const optim::Sgd& sgd, int steps, bool with_last);
std::vector<double> train_transformer(RolledTransformer& model, const Tensor& tokens,
                                      const Tensor& targets, const nn::AxisRules& rules,
                                      const optim::Adam& adam, int steps, bool with_last);

}  // namespace meshard::conformance

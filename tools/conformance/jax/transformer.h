// The transformer of JAX's cases, made of nn/ and trained with optim/.
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

/// The same with its equal layers stacked: each tensor of `blocks` has them along dimension 0.
struct RolledTransformer {
  nn::Embedding words;
  Tensor positions;
  TransformerBlock blocks;
  nn::LayerNorm norm;
  nn::Linear head;
  MESHARD_FIELDS(words, positions, blocks, norm, head)
};
/// Stacked tensors lie as their layers do.
RolledTransformer rolled(const Transformer& model);

/// A transformer of undefined tensors with so many layers.
Transformer empty_transformer(std::size_t layers);

/// Its tensors by their names in the cases: `tok`, `blocks.0.wq`.
std::map<std::string, Tensor*> tensors_by_name(Transformer& model);

/// The mean cross-entropy; tokens and targets are i32 [batch, time]. Activations are marked so that
/// "dp" splits the batch, if there is a mesh.
Tensor transformer_loss(const Transformer& model, const Tensor& tokens, const Tensor& targets,
                        const nn::AxisRules& rules);
/// The same, with repeat() over the layers.
Tensor transformer_loss(const RolledTransformer& model, const Tensor& tokens, const Tensor& targets,
                        const nn::AxisRules& rules);

/// The losses before each of `steps` steps on one batch, and after the last if `with_last`; `model`
/// becomes the trained one.
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

// A small GPT and its training step: the program used to measure tracing.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "meshard/graph/evaluator.h"
#include "meshard/meshard.h"

namespace meshard::bench {

/// How the layers are written.
enum class LayerForm : std::uint8_t {
  kPlain,             ///< a loop over a vector of layers
  kRepeat,            ///< repeat() over stacked parameters
  kLayers,            ///< a loop over an nn::Layers
  kLayersCheckpoint,  ///< the same, recomputing the layers in the backward pass
};

struct GptSizes {
  std::int64_t layers = 12, width = 256, heads = 4, hidden = 1024, length = 128, words = 1024,
               batch = 8;
  /// Unless kPlain, Gpt::blocks has one entry, with all layers stacked.
  LayerForm form = LayerForm::kPlain;
};

struct GptBlock {
  Tensor norm1_scale, norm1_shift, query, key, value, out, norm2_scale, norm2_shift, up, up_bias,
      down, down_bias;
  MESHARD_FIELDS(norm1_scale, norm1_shift, query, key, value, out, norm2_scale, norm2_shift, up,
                 up_bias, down, down_bias)
};

struct Gpt {
  Tensor words, positions, norm_scale, norm_shift, head;
  std::vector<GptBlock> blocks;
  MESHARD_FIELDS(words, positions, norm_scale, norm_shift, head, blocks)
};

/// The state that a step updates.
struct GptState {
  Gpt model, mean, square;
  Tensor steps;
  MESHARD_FIELDS(model, mean, square, steps)
};

/// Replaces each parameter with the result of `make(type, spec)`. The mesh has the axes "dp" and
/// "tp".
template <class Make>
Gpt make_gpt(const GptSizes& sizes, Make&& make);

/// One step of Adam on a batch of i32[batch, length] tokens and targets. Returns the next state and
/// the loss.
std::pair<GptState, Tensor> gpt_step(const GptSizes& sizes, const Mesh& mesh, const GptState& state,
                                     const Tensor& tokens, const Tensor& targets);

/// gpt_step on a mesh of 2x4 devices, with all of its state donated, as jit records it.
Program recorded_step(const GptSizes& sizes);

template <class Make>
Gpt make_gpt(const GptSizes& s, Make&& make) {
  auto f32 = [&](std::initializer_list<std::int64_t> shape, const PartitionSpec& spec) {
    return make(TensorType{DType::f32, Shape(shape)}, spec);
  };
  std::int64_t per_head = s.width / s.heads;
  Gpt gpt;
  gpt.words = f32({s.words, s.width}, P());
  gpt.positions = f32({s.length, s.width}, P());
  gpt.norm_scale = f32({s.width}, P());
  gpt.norm_shift = f32({s.width}, P());
  gpt.head = f32({s.width, s.words}, P(none, "tp"));
  for (std::int64_t i = 0; i < s.layers; ++i) {
    GptBlock block;
    block.norm1_scale = f32({s.width}, P());
    block.norm1_shift = f32({s.width}, P());
    block.query = f32({s.width, s.heads, per_head}, P(none, "tp", none));
    block.key = f32({s.width, s.heads, per_head}, P(none, "tp", none));
    block.value = f32({s.width, s.heads, per_head}, P(none, "tp", none));
    block.out = f32({s.heads, per_head, s.width}, P("tp", none, none));
    block.norm2_scale = f32({s.width}, P());
    block.norm2_shift = f32({s.width}, P());
    block.up = f32({s.width, s.hidden}, P(none, "tp"));
    block.up_bias = f32({s.hidden}, P("tp"));
    block.down = f32({s.hidden, s.width}, P("tp", none));
    block.down_bias = f32({s.width}, P());
    gpt.blocks.push_back(std::move(block));
  }
  return gpt;
}

}  // namespace meshard::bench

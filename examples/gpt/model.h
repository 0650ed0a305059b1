// A decoder-only transformer over bytes, made of the layers of meshard::nn.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "meshard/meshard.h"

namespace gpt {

struct Sizes {
  std::int64_t layers = 2, width = 64, heads = 4, hidden = 176;
};
inline constexpr std::int64_t kBytes = 256;

struct Block {
  meshard::nn::RmsNorm attention_norm;
  meshard::nn::Attention attention;
  meshard::nn::RmsNorm mlp_norm;
  meshard::nn::GatedMlp mlp;
  MESHARD_FIELDS(attention_norm, attention, mlp_norm, mlp)
};

struct Gpt {
  meshard::nn::Embedding bytes;
  std::vector<Block> blocks;
  meshard::nn::RmsNorm norm;
  meshard::nn::Linear head;
  MESHARD_FIELDS(bytes, blocks, norm, head)
};

/// A model that has learned, and how many bytes the windows had that it learned from: it knows no
/// positions beyond. In a checkpoint these are the members "model" and "context".
struct Trained {
  Gpt model;
  std::int64_t context = 0;
  MESHARD_FIELDS(model, context)
};

/// What there is to learn. See meshard::nn::create().
Gpt make_gpt(meshard::nn::Maker& make, const Sizes& sizes);

/// How the model and its activations are spread: the batch over "data"; heads and hidden values
/// over "model" (tensor parallelism). With `sequence`, what is between the layers is split over
/// "model" by time (sequence parallelism: Korthikanti et al., 2022).
meshard::nn::AxisRules rules_for(const meshard::Mesh& mesh, bool sequence);

/// The mean cross-entropy, in nats per byte, of each byte given those before it: windows i32
/// [batch, time + 1].
meshard::Tensor loss_of(const Gpt& model, const meshard::Tensor& windows,
                        const meshard::nn::AxisRules& rules);

/// What may follow each byte, given those before it in its row: f32 [batch, time, 256] for bytes
/// i32 [batch, time].
meshard::Tensor logits_of(const Gpt& model, const meshard::Tensor& bytes,
                          const meshard::nn::AxisRules& rules);

/// A cache for each block.
using Caches = std::vector<meshard::nn::KeyValueCache>;

/// Empty caches for `batch` rows of `length` bytes.
Caches make_caches(const Gpt& model, const meshard::nn::AxisRules& rules, std::int64_t batch,
                   std::int64_t length);

/// What may follow each row's byte number last[b], f32 [batch, 256], where the new bytes, i32
/// [batch, time], stand at the positions start[b], start[b] + 1, ...; and the caches with them.
/// Bytes after the last one fill up rows that have fewer new ones than others: they are not seen,
/// and what the caches get of them is written over by the next call, or lost beyond their length.
std::pair<meshard::Tensor, Caches> next_byte(const Gpt& model, const meshard::Tensor& bytes,
                                             const Caches& caches, const meshard::Tensor& start,
                                             const meshard::Tensor& last);

/// How many numbers there are to learn.
std::int64_t count_parameters(const Gpt& model);

}  // namespace gpt

// A decoder-only transformer over bytes, built from the layers of meshard::nn.
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

template <class Blocks>
struct GptOf {
  meshard::nn::Embedding bytes;
  Blocks blocks;
  meshard::nn::RmsNorm norm;
  meshard::nn::Linear head;
  MESHARD_FIELDS(bytes, blocks, norm, head)
};
/// The form for training: the layers are stacked, and a loop over them is one loop of the program.
using Gpt = GptOf<meshard::nn::Layers<Block>>;
/// The form for generating text: the layers are separate, because a step reads every weight once,
/// in place, and writes to a cache of each layer. Its checkpoints are those of Gpt.
using Decoder = GptOf<std::vector<Block>>;

/// A trained model and its context length, the number of bytes in training windows. The model has
/// not learned longer positions. In a checkpoint these are the members "model" and "context".
struct Trained {
  Decoder model;
  std::int64_t context = 0;
  MESHARD_FIELDS(model, context)
};

/// The trainable parameters; both forms have equal values. See meshard::nn::create().
Gpt make_gpt(meshard::nn::Maker& make, const Sizes& sizes);
Decoder make_decoder(meshard::nn::Maker& make, const Sizes& sizes);

/// The same model with separate layers.
Decoder decoder_of(const Gpt& model);

/// Sharding rules for the model and its activations. The batch is sharded over "data", heads and
/// hidden values over "model" (tensor parallelism). With `sequence`, the activations between layers
/// are also sharded over "model" along time (sequence parallelism: Korthikanti et al., 2022).
meshard::nn::AxisRules rules_for(const meshard::Mesh& mesh, bool sequence);

/// The mean cross-entropy of each byte given those before it, in nats per byte. `windows` is i32
/// [batch, time + 1].
meshard::Tensor loss_of(const Gpt& model, const meshard::Tensor& windows,
                        const meshard::nn::AxisRules& rules);

/// The logits of the byte after each byte, given those before it in its row. The result is f32
/// [batch, time, 256] for `bytes` i32 [batch, time].
meshard::Tensor logits_of(const Gpt& model, const meshard::Tensor& bytes,
                          const meshard::nn::AxisRules& rules);

/// The inputs and the targets of windows, both i32 [batch, time].
meshard::Tensor inputs_of(const meshard::Tensor& windows);
meshard::Tensor targets_of(const meshard::Tensor& windows);

/// The three parts of logits_of(): from the bytes to f32 [batch, time, width], through layers, and
/// from there to the logits. A pipeline calls them in different stages.
meshard::Tensor embed(const meshard::nn::Embedding& table, const meshard::Tensor& bytes,
                      const meshard::nn::AxisRules& rules);
meshard::Tensor through(const meshard::nn::Layers<Block>& blocks, meshard::Tensor x,
                        const meshard::nn::AxisRules& rules);
meshard::Tensor to_logits(const meshard::nn::RmsNorm& norm, const meshard::nn::Linear& head,
                          const meshard::Tensor& x);

/// A key-value cache for each block.
using Caches = std::vector<meshard::nn::KeyValueCache>;

/// Empty caches for `batch` rows of `length` bytes.
Caches make_caches(const Decoder& model, const meshard::nn::AxisRules& rules, std::int64_t batch,
                   std::int64_t length);

/// The next-byte logits of each row, f32 [batch, 256], and the updated caches. The new bytes, i32
/// [batch, time], have the positions start[b], start[b] + 1, ...; the logits are for the byte after
/// new byte number last[b]. Bytes after last[b] only pad the row: they are masked, and their cache
/// entries are overwritten by the next call, or dropped beyond the caches' length. Only the first
/// `read` positions of the caches are read (nn::Attending).
std::pair<meshard::Tensor, Caches> next_byte(const Decoder& model, const meshard::Tensor& bytes,
                                             const Caches& caches, const meshard::Tensor& start,
                                             const meshard::Tensor& last,
                                             meshard::Static<std::int64_t> read);

/// The number of positions to read if the last one is number `most` - 1: a power of two that is at
/// least 64, or the caches' length. A few programs thus serve all positions.
std::int64_t positions_to_read(std::int64_t most, std::int64_t length);

/// The number of trainable parameters.
template <class Blocks>
std::int64_t count_parameters(const GptOf<Blocks>& model) {
  std::int64_t count = 0;
  for (const meshard::Tensor& tensor : meshard::structure::tensors(model)) count += tensor.size();
  return count;
}

}  // namespace gpt

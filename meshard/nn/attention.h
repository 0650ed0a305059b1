// Multi-head attention over a sequence, with and without a key-value cache.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>

#include "meshard/nn/maker.h"

namespace meshard::nn {

/// Rotary position embedding (Su et al.: RoFormer, 2021). In each head the elements i and i + size
/// / 2 are rotated as a pair by the angle position * theta^(-2 i / size).
struct Rotary {
  double theta = 10000;
};

/// Applies it to x [batch, time, heads, size], with `positions` integers [time] or [batch, time].
/// Computed in f32.
/// @error invalid argument if the size is odd or the positions do not fit.
Tensor rotated(const Rotary& rotary, const Tensor& x, const Tensor& positions,
               SourceLocation where = SourceLocation::current());

/// The parameters of multi-head attention. query is [width, heads, size], key and value [width,
/// key_heads, size], out [heads, size, width]. The biases, if any, are [heads, size], twice
/// [key_heads, size], and [width]. With fewer key heads than heads, groups of query heads share one
/// (Ainslie et al.: GQA, 2023). key and value of cross-attention are [memory_width, key_heads,
/// size]. The scales of normalized queries and keys, if any, are [size].
struct Attention {
  Tensor query, key, value, out;
  std::optional<Tensor> query_bias, key_bias, value_bias, out_bias, query_scale, key_scale;
  MESHARD_FIELDS(query, key, value, out, query_bias, key_bias, value_bias, out_bias, query_scale,
                 key_scale)
};

/// The sizes of make_attention(), and the initial values of its weights.
struct AttentionSizes {
  std::int64_t heads = 1;
  std::int64_t key_heads = 0;  ///< default 0: as many as heads
  std::int64_t size = 0;       ///< of a head; default 0: width / heads
  bool bias = false;
  std::int64_t memory_width = 0;  ///< of cross-attention; default 0: as the width
  bool qk_norm = false;           ///< with scales of normalized queries and keys
  Initializer weight = init::lecun_normal(), out = init::lecun_normal();
};
/// Creates attention parameters. The dimension names are "embed", "heads", "key_heads", and "head"
/// for a head's elements. Give "key_heads" the same rule as "heads" unless the mesh axis is larger
/// than the number of key heads.
/// @error invalid argument if the heads do not divide the width, or key heads the heads.
Attention make_attention(Maker& make, std::int64_t width, const AttentionSizes& options,
                         SourceLocation where = SourceLocation::current());

/// How queries and keys are normalized over a head's elements, before their rotation.
enum class QkNorm : std::uint8_t {
  kLayer,  ///< (x - mean) / sqrt(variance + 1e-6) * scale (Dehghani et al.: ViT-22B, 2023)
  kRms,    ///< x / sqrt(mean(x^2) + 1e-6) * scale
};

/// Options of attention() and cross_attention().
struct Attending {
  /// Lets a position attend only to itself and earlier positions. Default: true, and false in
  /// cross_attention().
  std::optional<bool> causal = std::nullopt;
  std::optional<Rotary> rotary = std::nullopt;
  /// Used if the parameters have scales of queries and keys.
  QkNorm qk_norm = QkNorm::kLayer;
  /// As in AttentionOptions: factor of the products; window; mask and bias, which broadcast to
  /// [batch, heads, positions of x, positions of keys].
  std::optional<double> scale = std::nullopt;
  std::optional<std::int64_t> left_window = std::nullopt, right_window = std::nullopt;
  Tensor mask = {}, bias = {};
  /// Limits the scaled products softly, before bias and mask: soft_cap * tanh(product / soft_cap).
  std::optional<double> soft_cap = std::nullopt;
  /// With a cache: the number of its positions, from the first one, that are read; 0: all. The time
  /// of a step grows with this number, not with the cache's length. Each number is another program,
  /// so round it up, for example to powers of two.
  std::int64_t read = 0;
};

/// Attention from x [batch, time, width] to the same shape. Scores are scaled by 1 / sqrt(size)
/// unless how.scale is given, and their softmax is computed in f32 (Vaswani et al., 2017).
/// @error invalid argument: how.read without a cache; as dot_product_attention()
Tensor attention(const Attention& params, const Tensor& x, const Attending& how = {},
                 SourceLocation where = SourceLocation::current());

/// Attention of each position of x, [batch, time, width], to the positions of `memory`, [batch,
/// keys, memory width]: the result has the shape of x.
/// @error as attention(); another width of the memory
Tensor cross_attention(const Attention& params, const Tensor& x, const Tensor& memory,
                       const Attending& how = {}, SourceLocation where = SourceLocation::current());

/// Keys and values of earlier positions: [batch, key_heads, length, size] each, so that a head's
/// positions are contiguous when they are read. `length` is the maximum number of positions.
struct KeyValueCache {
  Tensor key, value;
  MESHARD_FIELDS(key, value)
};

/// An empty cache for `params`, on their devices. Batch and heads are sharded by the rules for
/// "batch" and "key_heads".
KeyValueCache make_cache(const AxisRules& rules, const Attention& params, std::int64_t batch,
                         std::int64_t length, SourceLocation where = SourceLocation::current());

/// Attention of new positions to themselves and to those in the cache. Row b of x, [batch, time,
/// width], contains the positions start[b], start[b] + 1, ... of its sequence; `start` is i32
/// [batch], so that rows may have different lengths. Returns the result, and the cache with the new
/// positions added. If the cache is donated, only the new positions are written.
/// @pre start[b] + time <= the cache's length: positions beyond it are lost; start[b] + time <=
/// how.read unless that is 0: positions beyond it are not attended to.
/// @error invalid argument: start does not have one integer per row; how.read is not one of the
/// cache's numbers of positions.
std::pair<Tensor, KeyValueCache> attention(const Attention& params, const Tensor& x,
                                           const KeyValueCache& cache, const Tensor& start,
                                           const Attending& how = {},
                                           SourceLocation where = SourceLocation::current());

}  // namespace meshard::nn

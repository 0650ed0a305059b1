// Attention of several heads over one sequence, with and without a cache of what was seen.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>

#include "meshard/nn/maker.h"
#include "meshard/nn/rotary.h"

namespace meshard::nn {

/// query [width, heads, size], key and value [width, key_heads, size], out [heads, size, width];
/// biases [heads, size], [key_heads, size] twice and [width], or none. With fewer key heads than
/// heads, groups of query heads share one (Ainslie et al.: GQA, 2023).
struct Attention {
  Tensor query, key, value, out;
  std::optional<Tensor> query_bias, key_bias, value_bias, out_bias;
  MESHARD_FIELDS(query, key, value, out, query_bias, key_bias, value_bias, out_bias)
};

struct AttentionSizes {
  std::int64_t heads = 1;
  std::int64_t key_heads = 0;  ///< 0: as many as heads
  std::int64_t size = 0;       ///< of a head; 0: width / heads
  bool bias = false;
  Initializer weight = init::lecun_normal(), out = init::lecun_normal();
};
/// Dimensions "embed", "heads", "key_heads", and "head" of a head's elements. Give "key_heads" the
/// rule of "heads" where the mesh axis is not larger than their number.
/// @error invalid argument if the heads do not divide the width, or key heads the heads.
Attention make_attention(Maker& make, std::int64_t width, const AttentionSizes& options);

/// How to attend.
struct Attending {
  /// A position sees itself and those before it.
  bool causal = true;
  std::optional<Rotary> rotary = std::nullopt;
};

/// x [batch, time, width] to the same shape. Scores are scaled by 1 / sqrt(size), and their softmax
/// is computed in f32 (Vaswani et al., 2017).
Tensor attention(const Attention& params, const Tensor& x, const Attending& how = {});

/// Keys and values of the positions seen: [batch, length, key_heads, size] each. `length` is how
/// many there may be.
struct KeyValueCache {
  Tensor key, value;
  MESHARD_FIELDS(key, value)
};

/// An empty cache for `params`, on their devices: batch and heads are split as the rules for
/// "batch" and "key_heads" say.
KeyValueCache make_cache(const AxisRules& rules, const Attention& params, std::int64_t batch,
                         std::int64_t length);

/// Attention of new positions to themselves and to those in the cache. Row b of x, [batch, time,
/// width], stands at the positions start[b], start[b] + 1, ... of its sequence; `start` is i32
/// [batch], so that rows may be of different lengths. Returns the result and the cache with the new
/// positions in it.
/// @pre start[b] + time is at most the cache's length: what lies beyond is lost.
/// @error invalid argument: start is not an integer for each row.
std::pair<Tensor, KeyValueCache> attention(const Attention& params, const Tensor& x,
                                           const KeyValueCache& cache, const Tensor& start,
                                           const Attending& how = {});

}  // namespace meshard::nn

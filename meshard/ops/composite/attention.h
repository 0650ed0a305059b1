// Attention and the positions that it sees.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/graph/tensor.h"

namespace meshard {

/// What dot_product_attention may be told.
struct AttentionOptions {
  /// Of the products; 1 / sqrt(the size of a head) if left out.
  std::optional<double> scale = std::nullopt;
  /// A query at position i sees keys at positions 0 to i.
  bool causal = false;
  /// A query at position i sees keys from position i - left_window, to i + right_window: a sliding
  /// window. Without a number there is no bound on that side.
  std::optional<std::int64_t> left_window = std::nullopt, right_window = std::nullopt;
  /// The position of the first query, an integer of rank 0; undefined: 0. Keys begin at 0. With a
  /// cache of keys it is the number of tokens before this call.
  Tensor first_query = {};
  /// Bools that broadcast to [batch, heads, queries, keys]: false where a key is not seen.
  Tensor mask = {};
  /// Numbers that broadcast to [batch, heads, queries, keys], added to the scaled products.
  Tensor bias = {};
};

/// softmax(query key^T * scale + bias) value (Vaswani et al., 2017): query is [batch, queries,
/// heads, size], key [batch, keys, key heads, size], value [batch, keys, key heads, value size];
/// the result is [batch, queries, heads, value size] in the dtype of the query.
///
/// heads is a multiple of the key heads, and neighbouring heads share a key head (grouped-query
/// attention; one key head: multi-query). Products and softmax are computed in f32 (f64 for f64). A
/// query that sees no key gets the mean of all values.
/// @error shapes that do not go together; a negative window; a mask that is not of bools.
Tensor dot_product_attention(In query, In key, In value, const AttentionOptions& options = {});

/// Which elements of a head rotate together.
enum class RotaryForm {
  kHalves,  ///< element i and i + size / 2 (GPT-NeoX, Llama)
  kPairs,   ///< elements 2 i and 2 i + 1 (RoFormer, GPT-J)
};

/// Rotary position embedding (Su et al.: RoFormer, 2021): the i-th pair of elements of each head is
/// turned by position * base^(-2 i / size). x is [..., time, heads, size]; positions are numbers
/// of shape [time], or one that broadcasts to the dimensions of x before the heads. Angles are
/// computed in f32 (f64 for f64). `rotated`: only the first so many elements of a head are turned.
/// @error size or `rotated` odd; positions that do not broadcast.
Tensor rotary_embedding(In x, In positions, RotaryForm form = RotaryForm::kHalves,
                        double base = 10000, std::optional<std::int64_t> rotated = std::nullopt);

}  // namespace meshard

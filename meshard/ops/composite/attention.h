// Attention and rotary position embedding.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/graph/tensor.h"

namespace meshard {

/// Options of dot_product_attention().
struct AttentionOptions {
  /// Factor of the products. Default: 1 / sqrt(head size).
  std::optional<double> scale = std::nullopt;
  /// Lets a query at position i attend only to keys at positions 0 to i. Default: false.
  bool causal = false;
  /// Sliding window: a query at position i attends only to keys from position i - left_window to i
  /// + right_window. Default: no bound on either side.
  std::optional<std::int64_t> left_window = std::nullopt, right_window = std::nullopt;
  /// The position of the first query, an integer of rank 0. Default (undefined): 0. Keys begin at
  /// 0. With a key cache it is the number of tokens before this call.
  Tensor first_query = {};
  /// Bools that broadcast to [batch, heads, queries, keys]: false where a key is masked out.
  Tensor mask = {};
  /// Numbers that broadcast to [batch, heads, queries, keys], added to the scaled products.
  Tensor bias = {};
  /// The layout of keys and values: [batch, key heads, keys, size] if true. A key-value cache in
  /// this layout is read without copies. Default: false, [batch, keys, key heads, size].
  bool keys_by_heads = false;
};

/// Dot-product attention: softmax(query key^T * scale + bias) value (Vaswani et al., 2017). query
/// is [batch, queries, heads, size], key [batch, keys, key heads, size], value [batch, keys, key
/// heads, value size]; the result is [batch, queries, heads, value size] in the dtype of the query.
///
/// heads is a multiple of the key heads, and adjacent heads share a key head (grouped-query
/// attention; with one key head, multi-query). Products and softmax are computed in f32 (f64 for
/// f64). A query whose keys are all masked gets the mean of all values.
/// @error shapes that do not match; a negative window; a mask that is not of bools.
Tensor dot_product_attention(In query, In key, In value, const AttentionOptions& options = {});

/// Which elements of a head are rotated as a pair.
enum class RotaryForm {
  kHalves,  ///< elements i and i + size / 2 (GPT-NeoX, Llama)
  kPairs,   ///< elements 2 i and 2 i + 1 (RoFormer, GPT-J)
};

/// Rotary position embedding (Su et al.: RoFormer, 2021). The i-th pair of elements of each head is
/// rotated by the angle position * base^(-2 i / size). x is [..., time, heads, size]; positions are
/// numbers of shape [time], or of a shape that broadcasts to the dimensions of x before the heads.
/// Angles are computed in f32 (f64 for f64). `rotated` restricts the rotation to that many leading
/// elements of a head.
/// @error size or `rotated` is odd; positions that do not broadcast.
Tensor rotary_embedding(In x, In positions, RotaryForm form = RotaryForm::kHalves,
                        double base = 10000, std::optional<std::int64_t> rotated = std::nullopt);

}  // namespace meshard

// Attention whose products are limited softly, for layers.
#pragma once
#include "meshard/ops/composite/attention.h"

namespace meshard {

/// dot_product_attention() with the scaled products limited softly, before bias and mask: soft_cap
/// * tanh(product / soft_cap) (Bello et al., 2017; Gemma 2).
/// @error as dot_product_attention(); a soft_cap that is not positive
Tensor capped_attention(In query, In key, In value, const AttentionOptions& options,
                        double soft_cap);

}  // namespace meshard

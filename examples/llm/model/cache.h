// Keys and values of earlier tokens, in pages that sequences share.
#pragma once
#include <cstdint>
#include <utility>

#include "examples/llm/model/model.h"

namespace llm {

/// Keys and values: [layers, pages, page tokens, key heads, head size] each.
struct PagedCache {
  meshard::Tensor key, value;
  MESHARD_FIELDS(key, value)
};

/// An empty cache on the devices of the rules. Key heads are sharded as those of the model.
/// @param abstract without values, for reports
PagedCache make_paged_cache(const Config& config, const meshard::nn::AxisRules& rules,
                            std::int64_t pages, std::int64_t page_tokens, meshard::DType dtype,
                            bool abstract = false);

/// The tokens of one step. Rows are sequences, or padding with a count of 0.
struct PagedTokens {
  meshard::Tensor tokens;  ///< i32[rows, time]
  meshard::Tensor start;   ///< i32[rows]: how many tokens of the sequence came before
  meshard::Tensor count;   ///< i32[rows]: how many of the row's tokens are not padding
  meshard::Tensor pages;   ///< i32[rows, read]: the pages of the sequence, in order
  MESHARD_FIELDS(tokens, start, count, pages)
};

/// Runs tokens, and writes their keys and values to the cache, in place if it is donated. Returns
/// the logits f32 after each row's last token, [rows, 1, vocabulary], or with `all_logits` after
/// each, [rows, time, vocabulary], and the cache.
std::pair<meshard::Tensor, PagedCache> paged_step(const Model& model, const Config& config,
                                                  const PagedTokens& rows, const PagedCache& cache,
                                                  const meshard::nn::AxisRules& rules,
                                                  bool all_logits);

}  // namespace llm

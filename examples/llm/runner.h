#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace llm {

/// Sizes of a Runner. All counts are of tokens unless they say otherwise.
struct RunnerLimits {
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;       ///< the longest sequence
  std::int64_t page_tokens = 0;   ///< the tokens whose keys and values one page stores of the cache
  std::int64_t pages = 0;         ///< pages of the cache, numbered 0 to pages - 1
  std::int64_t sequences = 0;     ///< the most chunks of one step
  std::int64_t chunk_tokens = 0;  ///< the most tokens of one chunk
};

/// The next tokens of one sequence.
struct Chunk {
  std::vector<std::int32_t> tokens;  ///< at least one
  std::int64_t start =
      0;  ///< the tokens of this sequence whose keys and values are in the cache already
  /// The pages of the sequence, in order; they hold at least start + tokens.size() tokens. Several
  /// sequences may share pages that hold only tokens before their `start`.
  std::vector<std::int32_t> pages;
  std::int64_t logits =
      1;  ///< logits are wanted after each of the last `logits` tokens; 0 within a long prompt
};

/// A language model and the cache of its keys and values, in pages. The server knows the model only
/// through it.
class Runner {
 public:
  virtual ~Runner() = default;

  [[nodiscard]] virtual const RunnerLimits& limits() const = 0;

  /// Runs all chunks in one step and writes their keys and values into their pages.
  /// @pre the chunks are within limits(); pages that are written to belong to one chunk only
  /// @return for each chunk, `logits` rows of `vocabulary` numbers, one after the other
  virtual std::vector<std::vector<float>> step(const std::vector<Chunk>& chunks) = 0;
};

}  // namespace llm

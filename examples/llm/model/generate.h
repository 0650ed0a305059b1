// Generates tokens with a Runner, without a server.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "examples/llm/runner.h"

namespace llm {

/// Gives each of several sequences the pages that its longest form needs, and runs their tokens.
class Sequences {
 public:
  /// @param most the longest that a sequence becomes
  /// @error invalid argument: the runner's cache does not hold so many tokens of so many sequences
  Sequences(Runner& runner, std::size_t count, std::int64_t most);

  /// Appends tokens to each sequence, in as many steps as the runner's chunks need.
  /// @return the logits after each of the last `logits` new tokens of each sequence
  std::vector<std::vector<float>> append(const std::vector<std::vector<std::int32_t>>& tokens,
                                         std::int64_t logits = 1);

 private:
  Runner& runner_;
  std::vector<std::vector<std::int32_t>> pages_;
  std::vector<std::int64_t> lengths_;
};

/// The tokens with the highest logits, one after the other, after each prompt: `count`, or fewer if
/// one of `end_tokens` comes, which is then the last.
std::vector<std::vector<std::int32_t>> generate_greedily(
    Runner& runner, const std::vector<std::vector<std::int32_t>>& prompts, std::int64_t count,
    std::span<const std::int64_t> end_tokens);

}  // namespace llm

#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace llm {

/// The tokens that followed the last occurrence of the longest end of the sequence (three tokens at
/// most, and at least one) that occurs before in it: a guess of what comes next (prompt lookup
/// decoding, Saxena 2023). At most `most` tokens; none if there is no such occurrence.
[[nodiscard]] std::vector<std::int32_t> prompt_lookup(std::span<const std::int32_t> tokens,
                                                      std::int64_t most);

}  // namespace llm

#include "examples/llm/server/prompt_lookup.h"

#include <algorithm>

namespace llm {

std::vector<std::int32_t> prompt_lookup(std::span<const std::int32_t> tokens, std::int64_t most) {
  constexpr std::size_t kLongest = 3;
  if (most <= 0) return {};
  for (std::size_t length = std::min(kLongest, tokens.size()); length > 0; --length) {
    const auto end = tokens.last(length);
    for (std::size_t at = tokens.size() - length; at-- > 0;) {
      if (!std::equal(end.begin(), end.end(), tokens.begin() + static_cast<std::ptrdiff_t>(at)))
        continue;
      const auto next = tokens.subspan(at + length);
      const auto count = std::min(next.size(), static_cast<std::size_t>(most));
      return {next.begin(), next.begin() + static_cast<std::ptrdiff_t>(count)};
    }
  }
  return {};
}

}  // namespace llm

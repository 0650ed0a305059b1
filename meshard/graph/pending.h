// Detects a growing chain of recorded nodes whose values are never read, and gives advice.
#pragma once
#include <cstdint>

#include "meshard/graph/node.h"

namespace meshard {

/// The chain length at which a chain is checked. A power of two. A longer chain is checked each
/// time its length has doubled, so that all checks together take time proportional to its length.
inline constexpr std::uint32_t kLongChain = 8192;

namespace internal {
/// Advises to sync or jit if at least kLongChain nodes must still be computed for `value`.
void advise_on_chain(const Value& value);
}  // namespace internal

/// Called for each lazily recorded node. Costs one comparison.
inline void watch_chain(const Value& value) {
  std::uint32_t depth = value->pending_depth();
  if (depth >= kLongChain && (depth & (depth - 1)) == 0) [[unlikely]]
    internal::advise_on_chain(value);
}

}  // namespace meshard

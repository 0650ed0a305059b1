// Detects a growing chain of recorded nodes whose values are never read, and gives advice.
#pragma once
#include <cstdint>

#include "meshard/graph/node.h"

namespace meshard {

/// The chain length, and its multiples, at which a chain is checked. A power of two.
inline constexpr std::uint32_t kLongChain = 8192;

namespace internal {
/// Advises to sync or jit if at least kLongChain nodes must still be computed for `value`.
void advise_on_chain(const Value& value);
}  // namespace internal

/// Called for each lazily recorded node. Costs one comparison.
inline void watch_chain(const Value& value) {
  std::uint32_t depth = value->pending_depth();
  if (depth != 0 && depth % kLongChain == 0) [[unlikely]]
    internal::advise_on_chain(value);
}

}  // namespace meshard

// Recorded nodes that nobody reads: a chain of them that grows without end is worth a word.
#pragma once
#include <cstdint>

#include "meshard/graph/node.h"

namespace meshard {

/// A chain of so many recorded nodes is looked at. A power of two.
inline constexpr std::uint32_t kLongChain = 8192;

namespace internal {
/// Advises to read or jit, if `value` still needs kLongChain nodes or more to be computed.
void advise_on_chain(const Value& value);
}  // namespace internal

/// Called for each lazily recorded node. Costs a comparison.
inline void watch_chain(const Value& value) {
  std::uint32_t depth = value->pending_depth();
  if (depth != 0 && depth % kLongChain == 0) [[unlikely]]
    internal::advise_on_chain(value);
}

}  // namespace meshard

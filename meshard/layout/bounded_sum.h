// Bounded sum: whether numbers, each taken a bounded number of times, add up to another.
#pragma once
#include <cstdint>

#include "meshard/base/inline_vector.h"

namespace meshard {

/// Wide enough for sums and differences of what fits 64 bits.
__extension__ using WideInt = __int128;

/// A number that may be taken 0 to `count` times.
struct BoundedTerm {
  WideInt step = 0;
  WideInt count = 0;
};
using BoundedTerms = InlineVector<BoundedTerm, 8>;

/// True if there are c_i with 0 <= c_i <= count_i and sum(c_i step_i) = target. Lists no values:
/// terms whose multiples join without a gap are merged first; then the larger steps are tried,
/// where the smaller ones can reach the rest and their gcd divides it. The last two steps are
/// decided at once. (In general this is subset sum, so that some inputs of many terms take long;
/// where each step is larger than the reach of the smaller ones there is one candidate for each.)
bool has_bounded_sum(const BoundedTerms& terms, WideInt target);

}  // namespace meshard

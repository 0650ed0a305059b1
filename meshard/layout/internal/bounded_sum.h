// Bounded sum: whether numbers, each used a bounded number of times, can add up to a target.
#pragma once
#include <cstdint>

#include "meshard/base/inline_vector.h"

namespace meshard {

/// Wide enough for sums and differences of 64-bit integers.
__extension__ using WideInt = __int128;

/// A number that may be used 0 to `count` times.
struct BoundedTerm {
  WideInt step = 0;
  WideInt count = 0;
};
using BoundedTerms = InlineVector<BoundedTerm, 8>;

/// True if there are c_i with 0 <= c_i <= count_i and sum(c_i step_i) = target. Does not enumerate
/// the sums: it merges terms whose multiples join without a gap, then tries counts of the larger
/// steps, only where the smaller steps can reach the rest and their gcd divides it. The last two
/// steps are decided directly. (In general this is subset sum, so some inputs with many terms take
/// long; if each step is larger than the reach of the smaller ones, each has one candidate count.)
bool has_bounded_sum(const BoundedTerms& terms, WideInt target);

}  // namespace meshard

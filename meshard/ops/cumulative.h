// Cumulative ops: each element combined with all before it. cumulative_sum has a pair of its own.
#pragma once
#include "meshard/ops/cumulative_sum.h"

namespace meshard {

// Along a dimension: of the elements up to each, or from each on if `reverse`. The dtype stays
// where nothing else is said.

/// The products; dtypes as in sum(). Its derivative is right where elements are zero.
Tensor cumulative_prod(In x, std::int64_t dimension = -1, bool reverse = false);
/// The same with one element more if `include_initial`: the 1 that the products begin with, in
/// front (at the end if `reverse`).
Tensor cumulative_prod(In x, std::int64_t dimension, bool reverse, bool include_initial);
/// The largest (smallest) ones; NaN from the first one on. An element that is equal to the largest
/// before it shares its cotangent with that one. @error bools
Tensor cumulative_max(In x, std::int64_t dimension = -1, bool reverse = false);
Tensor cumulative_min(In x, std::int64_t dimension = -1, bool reverse = false);
/// The logarithms of the sums of exponentials, without overflow. Integers are computed in f32.
Tensor cumulative_logsumexp(In x, std::int64_t dimension = -1, bool reverse = false);

}  // namespace meshard

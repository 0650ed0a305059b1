// Cumulative ops, where each element is combined with all before it, and differences of neighbors.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The cumulative sums along a dimension: up to each element, or from each on if `reverse`. Dtypes
/// as in sum().
Tensor cumulative_sum(In x, std::int64_t dimension = -1, bool reverse = false);
/// The same, with one more element if `include_initial`: the initial 0, at the front (at the end if
/// `reverse`).
Tensor cumulative_sum(In x, std::int64_t dimension, bool reverse, bool include_initial);

// Each combines the elements along a dimension up to each position, or from each position on if
// `reverse`. The dtype is unchanged unless stated otherwise.

/// The cumulative products; dtypes as in sum(). The derivative is correct where elements are zero.
Tensor cumulative_prod(In x, std::int64_t dimension = -1, bool reverse = false);
/// The same, with one more element if `include_initial`: the initial 1, at the front (at the end if
/// `reverse`).
Tensor cumulative_prod(In x, std::int64_t dimension, bool reverse, bool include_initial);
/// The running maxima (minima); NaN from the first NaN on. An element that equals the maximum
/// before it shares its cotangent with that one. @error bools
Tensor cumulative_max(In x, std::int64_t dimension = -1, bool reverse = false);
Tensor cumulative_min(In x, std::int64_t dimension = -1, bool reverse = false);
/// The cumulative log-sum-exp, computed without overflow. Integers are computed in f32.
Tensor cumulative_logsumexp(In x, std::int64_t dimension = -1, bool reverse = false);

/// The differences x[i + 1] - x[i] along a dimension, taken `n` times. Each time the dimension gets
/// one shorter. `prepend` and `append` are first concatenated before and after x along it. Default
/// (undefined): nothing. For bools: true where neighbors differ.
/// @error negative n; prepend or append that do not fit.
Tensor diff(In x, std::int64_t dimension = -1, std::int64_t n = 1, Tensor prepend = {},
            Tensor append = {});

}  // namespace meshard

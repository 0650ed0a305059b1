#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The differences x[i + 1] - x[i] along a dimension, taken `n` times. Each time the dimension gets
/// one shorter. `prepend` and `append` are first concatenated before and after x along it. Default
/// (undefined): nothing. For bools: true where neighbors differ.
/// @error negative n; prepend or append that do not fit.
Tensor diff(In x, std::int64_t dimension = -1, std::int64_t n = 1, Tensor prepend = {},
            Tensor append = {});

}  // namespace meshard

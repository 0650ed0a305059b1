#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The differences of neighbours along a dimension, x[i + 1] - x[i], `n` times over: each time the
/// dimension is one shorter. `prepend` and `append` are first put before and behind x along it;
/// undefined: nothing. Of bools: where neighbours differ.
/// @error negative n; prepend or append that do not fit.
Tensor diff(In x, std::int64_t dimension = -1, std::int64_t n = 1, Tensor prepend = {},
            Tensor append = {});

}  // namespace meshard

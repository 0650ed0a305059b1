#pragma once
#include "meshard/graph/sharding_mark.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// The same value with a sharding that the compiler must use. Dimensions beyond the sharding's are
/// not split. It only records an operation, for any `x`: to put data on devices use mark_sharding.
/// @error the sharding describes more dimensions than x has.
Tensor sharding_constraint(In x, const Sharding& sharding);

}  // namespace meshard

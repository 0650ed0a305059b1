#pragma once
#include "meshard/graph/sharding_mark.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// The same value, which the compiler is to lay out as `sharding` says; dimensions beyond the
/// sharding's are not split. Only records, whatever `x` is: to put data on devices use
/// mark_sharding.
/// @error the sharding describes more dimensions than x has.
Tensor sharding_constraint(In x, const Sharding& sharding);

}  // namespace meshard

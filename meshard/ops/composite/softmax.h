// Softmax, log-softmax and log-sum-exp, computed without overflow. Integers are computed in f32.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// exp(x) divided by its sum along a dimension.
Tensor softmax(In x, std::int64_t dimension = -1);

/// log(softmax(x)), accurate also where softmax is close to 0 or 1.
Tensor log_softmax(In x, std::int64_t dimension = -1);

/// log(sum(exp(x))) along dimensions; -inf if all elements are -inf, or there are none.
Tensor logsumexp(In x, DimensionList dimensions = {}, bool keepdims = false);

}  // namespace meshard

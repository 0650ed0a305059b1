#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The mean over all samples of -log softmax(logits) at the target: a scalar, computed in f32 (f64
/// for f64 logits). `dimension` is the classes'. Targets are class numbers, of the shape of logits
/// without the classes, or probabilities, of the shape of logits.
///
/// Works on logits whose classes are sharded: nothing is gathered.
/// @pre class numbers are in range; one that is not counts as a class of logit max(logits).
/// @error shapes that do not go together.
Tensor cross_entropy(In logits, In targets, std::int64_t dimension = -1);

}  // namespace meshard

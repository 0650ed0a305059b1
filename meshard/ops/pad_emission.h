// How edges and gaps are written as StableHLO.
#pragma once
#include "meshard/array/shape.h"
#include "meshard/ops/emission.h"

namespace meshard {

/// Writes `result`: `x` between `low` and `high` more elements of `value` on the edges of each
/// dimension, and `interior` between its elements. Negative edges cut off.
///
/// What is cut off is sliced off first. XLA's partitioner is wrong about a `stablehlo.pad` with a
/// negative edge on a dimension that is split: a shift of 2 elements over 3 devices moves nothing,
/// and one that cuts all elements off ends the process.
/// @pre one entry for each dimension; `interior` >= 0; the result's sizes follow from the others
void emit_pad(OpEmission& out, OpEmission::Typed result, OpEmission::Typed x,
              OpEmission::Typed value, const Dimensions& low, const Dimensions& high,
              const Dimensions& interior);

}  // namespace meshard

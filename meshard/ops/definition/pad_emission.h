// Lowers padding, at edges and between elements, to StableHLO.
#pragma once
#include "meshard/array/shape.h"
#include "meshard/ops/definition/emission.h"

namespace meshard {

/// The elements of a dimension that remain after negative edges removed some, and the padding
/// around them.
struct KeptElements {
  std::int64_t start, stop, low, high;
};
KeptElements kept_elements(std::int64_t size, std::int64_t low, std::int64_t high,
                           std::int64_t interior);

/// Writes `result`: `x` with `low` and `high` elements of `value` at the edges of each dimension,
/// and `interior` between its elements. Negative edges remove elements.
///
/// A negative edge is written as a slice before the pad (Quirk::kNegativePads).
/// @pre one entry per dimension; `interior` >= 0; the result's sizes follow from the others
void emit_pad(OpEmission& out, OpEmission::Typed result, OpEmission::Typed x,
              OpEmission::Typed value, const Dimensions& low, const Dimensions& high,
              const Dimensions& interior);

}  // namespace meshard

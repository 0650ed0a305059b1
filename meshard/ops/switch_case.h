#pragma once
#include <span>
#include <vector>

#include "meshard/graph/body_function.h"

namespace meshard {

/// Runs branch number `index` on the arguments; an index out of range is clamped. Only that branch
/// runs. The structured form is switch_case() of composite/control_flow.h.
/// @error an index that is not an integer of rank 0; no branches; branches whose results differ in
/// type.
std::vector<Tensor> switch_tensors(In index, std::span<const BodyFunction> branches,
                                   const std::vector<Tensor>& arguments,
                                   SourceLocation where = SourceLocation::current());

}  // namespace meshard

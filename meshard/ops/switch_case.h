#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "meshard/graph/body.h"

namespace meshard {

struct SwitchAttributes {
  /// One per case: from the arguments and captured values to the results.
  std::vector<Body> bodies;
  std::int64_t num_arguments = 0;
  std::string extends;
  MESHARD_FIELDS(bodies, num_arguments, extends)
};

/// Runs branch number `index` on the arguments; an index out of range is clamped. Only that branch
/// runs. The structured form is switch_case() of composite/control_flow.h.
/// @error an index that is not an integer of rank 0; no branches; branches whose results differ in
/// type.
std::vector<Tensor> switch_tensors(In index, std::span<const BodyFunction> branches,
                                   const std::vector<Tensor>& arguments,
                                   SourceLocation where = SourceLocation::current());

}  // namespace meshard

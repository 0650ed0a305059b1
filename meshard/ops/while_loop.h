#pragma once
#include <vector>

#include "meshard/graph/body_function.h"

namespace meshard {

/// Repeats `body`, from the carries to the next carries, while `condition` of the carries is true.
/// The structured form is while_loop() of composite/control_flow.h.
/// @error a condition that is not a bool of rank 0; a body that changes the types of the carries.
std::vector<Tensor> while_tensors(const BodyFunction& condition, const BodyFunction& body,
                                  const std::vector<Tensor>& carries,
                                  SourceLocation where = SourceLocation::current());

}  // namespace meshard

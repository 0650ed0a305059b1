// Checks that a program matches what inference computes for it.
#pragma once
#include "meshard/base/result.h"
#include "meshard/graph/graph.h"

namespace meshard {

/// Infers the types and annotations of every node again and compares them with the recorded ones.
/// Also checks that operands come before their users.
/// @error internal: a recorded node contradicts its own op.
Result<void> verify(const Graph& graph);

}  // namespace meshard

// Checks that a program is what inference would make of it.
#pragma once
#include "meshard/base/result.h"
#include "meshard/graph/graph.h"

namespace meshard {

/// Infers every node's types and annotations again and compares; checks that operands stand before
/// their users.
/// @error internal: some code recorded a node that its own op contradicts.
Result<void> verify(const Graph& graph);

}  // namespace meshard

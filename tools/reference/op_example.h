// Records the example of an op.
#pragma once
#include "meshard/graph/graph.h"
#include "meshard/graph/op_def.h"

namespace meshard::tool {

/// The program that op.example records. Its parameters are those of x and y, both f32[2,3], that
/// the example uses.
/// @error InternalError if the op is not in the op list.
Graph record_example(const OpDef& op);

/// The node of `op` in the example. @error InternalError if the example does not use the op.
const Node& example_node(const OpDef& op, const Graph& graph);

}  // namespace meshard::tool

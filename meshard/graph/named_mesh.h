// Which recorded values are bound to devices.
#pragma once
#include "meshard/graph/node.h"
#include "meshard/mesh/mesh.h"

namespace meshard {

/// The mesh that a node refers to; nullptr if there is none. It comes from a mark, from the node's
/// manual axes or explicit shardings, or from one of these in its bodies.
const Mesh* named_mesh(const Node& node);

/// True if the program placed the value, or a value that it is computed from, on devices. False for
/// unplaced values (leaf.h) and values computed only from these.
bool depends_on_placed(const Value& value);

}  // namespace meshard

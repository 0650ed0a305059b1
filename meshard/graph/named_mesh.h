// Which recorded values are bound to devices.
#pragma once
#include "meshard/graph/node.h"
#include "meshard/mesh/mesh.h"

namespace meshard {

/// The mesh that a node names itself: in a mark, in the manual axes that it is inside of, or in
/// either of these in a program inside of it. nullptr: none.
const Mesh* named_mesh(const Node& node);

/// True if somebody placed the value, or something that it is computed from: it is bound to
/// devices. False for unplaced values (leaf.h) and what is computed from these alone.
bool depends_on_placed(const Value& value);

}  // namespace meshard

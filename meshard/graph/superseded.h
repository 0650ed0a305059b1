// Nodes that others make unnecessary.
#pragma once
#include <string>
#include <unordered_map>

#include "meshard/graph/graph.h"

namespace meshard {

/// What Attributes::extends says of a node that gives more than one with these attributes.
std::string extension_key(const Attributes& attributes);

/// The nodes of a program whose results are the first results of another of its nodes, and that
/// other node. A derivative records a loop again with more results (what the way back needs); so
/// the loop itself runs once.
std::unordered_map<const Node*, const Node*> superseded_nodes(const Graph& graph);

}  // namespace meshard

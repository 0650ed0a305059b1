// Nodes that others make unnecessary.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "meshard/graph/body.h"
#include "meshard/graph/graph.h"

namespace meshard {

/// What Attributes::extends says of a node that gives more than one with these attributes and so
/// many results: a fingerprint, and the numbers of results of all that stand behind it, this first.
std::string extension_key(const Attributes& attributes, std::size_t num_results);
/// Those numbers.
std::vector<std::size_t> extended_counts(std::string_view extends);
/// The body with its first `count` results, and what these need.
Body with_first_results(const Body& body, std::size_t count);

/// The nodes of a program whose results are the first results of another of its nodes, and that
/// other node. A derivative records a loop again with more results (what the way back needs); so
/// the loop itself runs once.
std::unordered_map<const Node*, const Node*> superseded_nodes(const Graph& graph);
/// The same of some nodes. The nodes `apart` are told from others that compute the same: inputs of
/// a derivative, each of which has one of its own.
std::unordered_map<const Node*, const Node*> superseded_nodes(
    std::span<const Node* const> nodes, std::span<const Node* const> apart = {});

}  // namespace meshard

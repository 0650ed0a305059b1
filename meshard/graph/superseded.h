// Nodes that are unnecessary because another node computes the same results and more.
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

/// The value of Attributes::extends for a node that extends one with these attributes. It consists
/// of the attributes' fingerprint and the result counts of all extended nodes: `num_results` first,
/// then the counts in `attributes.extends()`.
std::string extension_key(const Attributes& attributes, std::size_t num_results);
/// The result counts in an extension key.
std::vector<std::size_t> extended_counts(std::string_view extends);
/// The body restricted to its first `count` results and the nodes that these need.
Body with_first_results(const Body& body, std::size_t count);

/// Maps each superseded node of a program to the node whose first results are its results. A
/// derivative records a loop again with additional results for the backward pass; then only that
/// loop needs to run.
std::unordered_map<const Node*, const Node*> superseded_nodes(const Graph& graph);
/// The same among `nodes`. Nodes in `apart` equal no other node, even one that computes the same:
/// they are inputs of a derivative, each with its own cotangent.
std::unordered_map<const Node*, const Node*> superseded_nodes(
    std::span<const Node* const> nodes, std::span<const Node* const> apart = {});

}  // namespace meshard

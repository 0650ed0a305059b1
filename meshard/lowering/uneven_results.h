// Results that nobody marked and whose sizes their axes do not divide.
#pragma once
#include <optional>
#include <vector>

#include "meshard/graph/graph.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// For each result of the graph, the sharding that follows from the operands by the ops' sharding
/// rules, if that does not divide the result's size; empty for all others.
///
/// The compiler chooses how unmarked results lie, but it drops an uneven sharding where values
/// leave the program, and gives every device the whole. A result with a sharding from here is
/// padded there as a marked one is, and keeps its place: an updated parameter lies as before.
std::vector<std::optional<Sharding>> uneven_results(const Graph& graph);

}  // namespace meshard

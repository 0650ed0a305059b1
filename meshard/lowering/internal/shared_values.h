// Values that XLA's CPU compiler would compute in several of its fusions.
#pragma once
#include <unordered_set>

#include "meshard/graph/graph.h"

namespace meshard {

/// The nodes of `graph` whose result should be in memory, because several others read it and it is
/// computed from many arrays by cheap operations alone (Quirk::kSharedValues).
///
/// XLA's CPU compiler fuses such a value into each of its users, which compute it again. Sums that
/// go through a whole model, such as the residual connections of a transformer and their gradient,
/// are then computed from the results of all layers, in each layer: both the size of the code and
/// the bytes that are read grow with the square of the number of layers.
///
/// A value with k users and n arrays is read k * n times, or n + k times and written once if it is
/// in memory. Values with k > 1 and n > kMostArraysOfShared are in memory. Arrays with less than
/// half of the value's elements do not count.
std::unordered_set<const Node*> shared_values(const Graph& graph);

/// Larger than the number of arrays on which values of a single layer depend, such as the
/// derivative of a normalization, which XLA fuses well.
inline constexpr std::size_t kMostArraysOfShared = 6;

}  // namespace meshard

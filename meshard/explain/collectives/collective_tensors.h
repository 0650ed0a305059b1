// Names the value that a collective moves, in the user's terms.
#pragma once
#include <vector>

#include "meshard/explain/collectives/collective.h"
#include "meshard/explain/collectives/reshard.h"
#include "meshard/explain/value_placement.h"
#include "meshard/graph/graph.h"

namespace meshard {

/// Sets Collective::tensor. For a resharding, it is the value's full type. Otherwise it is what the
/// collective's first place names in the graph: an argument, or an op with its result type. For a
/// module from elsewhere, it is the intermediate with the place's name. Empty if none of these is
/// known.
void name_tensors(std::vector<Collective>& collectives, const std::vector<Reshard>& reshards,
                  const std::vector<ValuePlacement>& intermediates, const Graph* graph);

}  // namespace meshard

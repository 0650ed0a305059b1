// Which value a collective moves, as the user knows it.
#pragma once
#include <vector>

#include "meshard/explain/collective.h"
#include "meshard/explain/reshard.h"
#include "meshard/explain/value_placement.h"
#include "meshard/graph/graph.h"

namespace meshard {

/// Fills Collective::tensor: of a resharding the value's whole type; else the argument, or the op
/// and its result's type, that the collective's first place names in the graph; else, of a module
/// from elsewhere, the value inside that has the place's name. Stays empty where none of these is
/// known.
void name_tensors(std::vector<Collective>& collectives, const std::vector<Reshard>& reshards,
                  const std::vector<ValuePlacement>& intermediates, const Graph* graph);

}  // namespace meshard

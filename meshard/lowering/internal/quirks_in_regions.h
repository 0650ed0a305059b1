// Which ops inside manual regions are written in another form, because of quirks of XLA's
// partitioner.
#pragma once
#include "meshard/graph/annotation.h"
#include "meshard/graph/node.h"
#include "meshard/quirks/quirks.h"

namespace meshard {

/// Whether operands and results are gathered over the axes that are not manual: the rows with
/// `gathered_in_regions`.
/// @param place the node's manual axes
bool is_gathered_in_region(const Node& node, const ManualAxes& place, QuirkSet quirks);

/// Whether all devices run all branches, or all turns, and select their own values
/// (Quirk::kDifferentBranches).
bool runs_on_all_devices(const Node& node, const ManualAxes& place, QuirkSet quirks);

}  // namespace meshard

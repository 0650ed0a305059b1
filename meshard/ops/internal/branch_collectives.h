// Collectives in branches and loops that only some devices run.
#pragma once
#include "meshard/graph/node.h"

namespace meshard::internal {

/// Checks a call of an op with bodies: no collective runs over an axis along which the devices may
/// take different ways to it, because it waits for all of them. They do if the index of a branch
/// around it, or the condition of a while loop around it, differs along the axis.
///
/// The check follows exactly which values differ, through carries and captured values, because the
/// annotations of bodies are too wide: in a body, all values that enter it vary over the same axes.
/// Nothing is checked while a body inside the same region is recorded; the call that runs that body
/// is checked then.
/// @error invalid argument at the collective's line, which names the line of the branch or loop.
void check_branch_collectives(const Node& node);

}  // namespace meshard::internal

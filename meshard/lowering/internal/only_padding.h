// Slices that keep only padding.
#pragma once
#include "meshard/graph/node.h"

namespace meshard {

/// True if `node` slices a pad, or pads one with negative edges, and keeps only what that pad
/// added (Quirk::kOnlyPadding). Lowering separates the two.
bool keeps_only_padding(const Node& node);

}  // namespace meshard

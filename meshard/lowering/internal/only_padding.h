// Slices that keep only padding.
#pragma once
#include "meshard/graph/node.h"

namespace meshard {

/// True if `node` slices a pad, or pads one with negative edges, and keeps only what that pad
/// added.
///
/// XLA merges the two into one pad with negative edges, and its partitioner terminates the process
/// if these remove more elements than there are (`shape.cc: Check failed: size >= 0`; API 0.81 to
/// 0.115). Lowering separates the two.
bool keeps_only_padding(const Node& node);

}  // namespace meshard

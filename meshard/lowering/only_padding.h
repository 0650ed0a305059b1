// Slices that keep nothing but padding.
#pragma once
#include "meshard/graph/node.h"

namespace meshard {

/// Whether `node` is a slice of a pad, or a pad of one whose negative edges cut, and keeps only
/// what the first pad added.
///
/// XLA makes one pad with negative edges of the two, and its partitioner ends the process where
/// these cut off more than there is (`shape.cc: Check failed: size >= 0`; API 0.81 to 0.115).
/// Lowering keeps the two apart.
bool keeps_only_padding(const Node& node);

}  // namespace meshard

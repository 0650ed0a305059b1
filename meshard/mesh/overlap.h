// Compares the sets of devices of two meshes.
#pragma once
#include <string_view>

#include "meshard/mesh/mesh.h"

namespace meshard {

enum class Overlap { kNone, kSome, kFirstInSecond, kSecondInFirst, kSame };

/// How the sets of devices of two meshes overlap, whatever their axes and roots. Decided by
/// arithmetic if the ids are strided; a rank map that lists its ids costs one pass.
Overlap overlap(const Mesh& first, const Mesh& second);

/// `none`, `some`, `first in second`, `second in first`, `same`.
std::string_view to_string(Overlap overlap);

}  // namespace meshard

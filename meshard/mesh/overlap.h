// Which devices two meshes have in common.
#pragma once
#include <string_view>

#include "meshard/mesh/mesh.h"

namespace meshard {

enum class Overlap { kNone, kSome, kFirstInSecond, kSecondInFirst, kSame };

/// How the device sets of two meshes lie to one another, whatever their axes and roots. Decided by
/// arithmetic where the ids are strided; a listed rank map costs one pass.
Overlap overlap(const Mesh& first, const Mesh& second);

/// `none`, `some`, `first in second`, `second in first`, `same`.
std::string_view to_string(Overlap overlap);

}  // namespace meshard

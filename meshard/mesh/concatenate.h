// Several meshes of one rank map as one.
#pragma once
#include <span>

#include "meshard/mesh/mesh.h"

namespace meshard {

/// The axes of all, in order: what slices took apart, put together in any order.
/// @post the root is that of the first
/// @error no mesh; rank maps that differ in value; axes that overlap; a name that occurs twice
/// (unit axes may repeat).
Mesh concatenate(std::span<const Mesh> meshes, SourceLocation where = SourceLocation::current());
Mesh concatenate(std::initializer_list<Mesh> meshes,
                 SourceLocation where = SourceLocation::current());

}  // namespace meshard

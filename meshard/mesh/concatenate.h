// Concatenates the axes of meshes over the same devices.
#pragma once
#include <span>

#include "meshard/mesh/mesh.h"

namespace meshard {

/// A mesh with the axes of all given meshes, in order. Recombines slices of one mesh in any order.
/// @post the result has the root of the first mesh
/// @error no mesh; rank maps that differ in value; different device types or rules for uneven
/// sizes; axes that overlap; a name that occurs twice (except for axes of size 1).
Mesh concatenate(std::span<const Mesh> meshes, SourceLocation where = SourceLocation::current());
Mesh concatenate(std::initializer_list<Mesh> meshes,
                 SourceLocation where = SourceLocation::current());

}  // namespace meshard

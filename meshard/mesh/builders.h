// Mesh builders: unnamed axes, one axis over all devices, checked device ids.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meshard/mesh/mesh.h"

namespace meshard {

/// Axis names, or none: the axes then get the default names `axis_0`, `axis_1`, ...
using MaybeNames = std::optional<std::vector<std::string>>;

/// Mesh axes of these sizes. @error the number of names differs from the number of sizes.
std::vector<MeshAxis> mesh_axes(IntView shape, const MaybeNames& names = std::nullopt,
                                SourceLocation where = SourceLocation::current());

/// True if all axes of a mesh have their default names.
bool axes_are_unnamed(const Mesh& mesh);

/// The mesh of devices 0..device_count-1 along one axis. @error device_count is below 1; invalid
/// axis name.
Mesh mesh_1d(std::int64_t device_count, std::string name = "axis_0",
             SourceLocation where = SourceLocation::current());

/// A mesh over some of the devices 0..device_count-1, in any order. Checks what torch_xla's Mesh
/// checks when subsets are allowed (pytorch/xla PR 9514).
/// @error more ids than devices; an id outside 0..device_count-1; the errors of Mesh's constructor.
Mesh mesh_on(std::int64_t device_count, std::vector<MeshAxis> axes,
             std::vector<std::int64_t> device_ids,
             SourceLocation where = SourceLocation::current());

}  // namespace meshard

// Meshes from shapes: axes without names, one axis over all devices, devices that must exist.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meshard/mesh/mesh.h"

namespace meshard {

/// Names for axes, or none: then they are called by their number, `axis_0`, `axis_1`, ...
using MaybeNames = std::optional<std::vector<std::string>>;

/// Axes of these sizes. @error there is not one name for each size.
std::vector<MeshAxis> mesh_axes(IntView shape, const MaybeNames& names = std::nullopt,
                                SourceLocation where = SourceLocation::current());

/// True if the axes of a mesh are called by their number.
bool axes_are_unnamed(const Mesh& mesh);

/// All devices 0..device_count-1 along one axis. @error no device; the name is no axis name.
Mesh mesh_1d(std::int64_t device_count, std::string name = "axis_0",
             SourceLocation where = SourceLocation::current());

/// Some of the devices 0..device_count-1, in any order; the checks of torch_xla's Mesh with
/// subsets allowed (pytorch/xla PR 9514).
/// @error more devices than there are; a device that is not there; what Mesh throws.
Mesh mesh_on(std::int64_t device_count, std::vector<MeshAxis> axes,
             std::vector<std::int64_t> device_ids,
             SourceLocation where = SourceLocation::current());

}  // namespace meshard

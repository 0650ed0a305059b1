// A mesh against the devices that there are.
#pragma once
#include "meshard/mesh/builders.h"
#include "meshard/mesh/mesh.h"
#include "meshard/pjrt/client.h"

namespace meshard {

/// Checks that this process's runtime has every device of the mesh, and that it is for the
/// runtime's platform. Without it, a mesh of devices that are not there is an error where something
/// is first placed on it. Starts the runtime.
///
/// A process has one client of one plugin, so that all its meshes are for one platform.
/// @error not found, with the devices that are missing and those that exist; failed precondition
/// for a mesh of another platform (Mesh::with_device_type).
void check_devices(const Mesh& mesh, SourceLocation where = SourceLocation::current());

/// The first devices of this process's runtime as a mesh for that platform: PyTorch's function of
/// this name. Starts the runtime.
///
/// @code
/// Mesh mesh = init_device_mesh("cpu", {2, 4}, {{"dp", "tp"}});
/// mesh.to_string();  // mesh<dp=2, tp=4; device_type=cpu>
/// @endcode
/// @error as check_devices; more positions than devices; what mesh_axes and Mesh throw.
Mesh init_device_mesh(std::string device_type, IntView shape,
                      const MaybeNames& names = std::nullopt,
                      SourceLocation where = SourceLocation::current());

/// Internal. @error failed precondition if the mesh is for another platform than the client's.
void check_device_type(const pjrt::Client& client, const Mesh& mesh, SourceLocation where);

}  // namespace meshard

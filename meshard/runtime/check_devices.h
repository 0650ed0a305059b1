// Checks a mesh against the devices that exist.
#pragma once
#include "meshard/mesh/builders.h"
#include "meshard/mesh/mesh.h"

namespace meshard {

/// Checks that all devices of the mesh's platform that the mesh uses exist, in this process or in
/// another one of the run. Without this check, a mesh with missing devices is an error at the first
/// placement on it. Starts the platform's client.
/// @error not found, with the missing and the existing devices, or if there is no plugin for the
/// mesh's device type; the plugin's errors.
void check_devices(const Mesh& mesh, SourceLocation where = SourceLocation::current());

/// Makes a mesh of a platform's first devices, as PyTorch's function of this name does. Starts the
/// platform's client. Meshes of several device types can coexist; "" is the default platform.
///
/// @code
/// Mesh mesh = init_device_mesh("cpu", {2, 4}, {{"dp", "tp"}});
/// mesh.to_string();  // mesh<dp=2, tp=4; device_type=cpu>
/// @endcode
/// @error as check_devices; more positions than devices; the errors of mesh_axes and Mesh.
Mesh init_device_mesh(std::string device_type, IntView shape,
                      const MaybeNames& names = std::nullopt,
                      SourceLocation where = SourceLocation::current());

}  // namespace meshard

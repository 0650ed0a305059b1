// A mesh against the devices that there are.
#pragma once
#include "meshard/mesh/builders.h"
#include "meshard/mesh/mesh.h"
#include "meshard/pjrt/client.h"

namespace meshard {

/// Checks that the platform of the mesh has every device of it in this process. Without it, a mesh
/// of devices that are not there is an error where something is first placed on it. Starts the
/// platform's client.
/// @error not found, with the devices that are missing and those that exist, or if there is no
/// plugin for the mesh's device type; what the plugin answers.
void check_devices(const Mesh& mesh, SourceLocation where = SourceLocation::current());

/// The first devices of a platform as a mesh: PyTorch's function of this name. Starts the
/// platform's client. Meshes of several device types live side by side; "" is the default platform.
///
/// @code
/// Mesh mesh = init_device_mesh("cpu", {2, 4}, {{"dp", "tp"}});
/// mesh.to_string();  // mesh<dp=2, tp=4; device_type=cpu>
/// @endcode
/// @error as check_devices; more positions than devices; what mesh_axes and Mesh throw.
Mesh init_device_mesh(std::string device_type, IntView shape,
                      const MaybeNames& names = std::nullopt,
                      SourceLocation where = SourceLocation::current());

/// Internal. @error failed precondition unless the client is that of the mesh's platform.
void check_device_type(const pjrt::Client& client, const Mesh& mesh, SourceLocation where);

}  // namespace meshard

// Topologies of running clients, and of hardware that a plugin describes.
#pragma once
#include <string>
#include <string_view>

#include "meshard/array/host_array.h"
#include "meshard/base/result.h"
#include "meshard/mesh/mesh.h"
#include "meshard/pjrt/client.h"
#include "meshard/pjrt/topology.h"
#include "meshard/topology/topology.h"

namespace meshard {

// A mesh as an array of device ids.

/// The device id at each coordinate, as an i64 array of the mesh's shape. For a slice with several
/// rows, the rows are an additional first dimension. torch_xla's `Mesh.get_logical_mesh()`.
///
/// @code
/// get_logical_mesh(Mesh({{"x", 2}, {"y", 2}}, {7, 6, 5, 4}));  // [[7, 6], [5, 4]] i64[2,2]
/// @endcode
HostArray get_logical_mesh(const Mesh& mesh);

/// The topology of a client's devices. The devices are in the plugin's order, with the attributes
/// `coords`, `core_on_chip` and `slice_index` if the plugin reports them. The client's topology
/// reports which directions are closed (attribute `wrap`); without that attribute, the kind of the
/// devices decides.
/// @error the errors of Topology
Result<Topology> topology_of(const pjrt::Client& client);

/// The topology of hardware that may be absent, such as `pjrt::TopologyDescription::create(libtpu,
/// "v5e:16x16")`.
Result<Topology> topology_of(const pjrt::TopologyDescription& topology);

/// The topology of the default platform. Starts its client. In a run of CPU devices on several
/// machines, each machine is a slice, so that hybrid_mesh() can have axes over machines.
/// @error the errors of runtime_client and Topology
Topology runtime_topology(SourceLocation where = SourceLocation::current());
/// The topology of another device type. Meshes made from it must be given this type
/// (with_device_type).
Topology runtime_topology(std::string_view device_type,
                          SourceLocation where = SourceLocation::current());

/// A mesh of all devices of the default platform along one axis. Starts its client.
Mesh mesh_1d(std::string name = "axis_0", SourceLocation where = SourceLocation::current());

}  // namespace meshard

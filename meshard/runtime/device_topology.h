// Topologies of live clients, and of hardware that a plugin describes.
#pragma once
#include <string>
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/mesh/mesh.h"
#include "meshard/pjrt/client.h"
#include "meshard/pjrt/topology.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// The devices of a client, in the plugin's order, with the attributes `coords`, `core_on_chip` and
/// `slice_index` where the plugin tells them. Where the grid closes is asked from the client's
/// topology (attribute `wrap`); a plugin that has none is believed by the kind of its devices.
/// @error what Topology refuses
Result<Topology> topology_of(const pjrt::Client& client);

/// The same of hardware that may be absent, such as `pjrt::Topology::create(libtpu, "v5e:16x16")`.
Result<Topology> topology_of(const pjrt::Topology& topology);

/// The devices of the default platform. Starts its client.
/// @error what runtime_client and Topology throw
Topology runtime_topology(SourceLocation where = SourceLocation::current());
/// Those of another device type: give meshes that are made of it this type (with_device_type).
Topology runtime_topology(std::string_view device_type,
                          SourceLocation where = SourceLocation::current());

/// All devices of the default platform along one axis. Starts its client.
Mesh mesh_1d(std::string name = "axis_0", SourceLocation where = SourceLocation::current());

}  // namespace meshard

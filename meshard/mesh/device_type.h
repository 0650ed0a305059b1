// Device types: which names mean one platform.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/mesh/mesh.h"

namespace meshard {

/// True if both meshes are for devices of one platform (Mesh::device_type). An empty type means the
/// default platform of the process; as long as the runtime has not said which that is, an empty
/// type fits any other.
bool same_platform(const Mesh& first, const Mesh& second);

/// The mesh's device type; of a mesh without one the name of the default platform, or `any` as
/// long as that is not known.
std::string platform_name(const Mesh& mesh);

namespace internal {
/// Says by which names the default platform is known, the usual one first; none: it is not known
/// yet. The runtime calls it.
void set_default_device_types(std::vector<std::string> names);
/// True if the two names mean one platform; "" means the default one.
bool same_device_type(std::string_view first, std::string_view second);
}  // namespace internal

}  // namespace meshard

// Which device, by its id, runs which logical device of a program. The logical devices 0..n-1 are
// numbered by lowering/program_mesh.h.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/mesh/mesh.h"
#include "meshard/pjrt/client.h"

namespace meshard {

/// The addressable device with this id.
/// @error not found, with the devices that exist.
const pjrt::Device& device_of(const pjrt::Client& client, std::int64_t id, SourceLocation where);

/// The device assignment of a program: the device ids of its logical devices 0..n-1. Logical device
/// i is position i of the program's mesh (LoweredModule::mesh). A program without a mesh runs on
/// the client's first device.
/// @error as device_of
std::vector<int> device_assignment(const pjrt::Client& client, const std::optional<Mesh>& mesh,
                                   SourceLocation where);

}  // namespace meshard

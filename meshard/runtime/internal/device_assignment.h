// Which device, by its id, runs which logical device of a program. The logical devices 0..n-1 are
// numbered by lowering/program_mesh.h.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/mesh/mesh.h"
#include "meshard/pjrt/client.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The device with this id, of this or another process.
/// @error not found, with the devices that exist.
const pjrt::Device& device_of(const pjrt::Client& client, std::int64_t id, SourceLocation where);

/// A position of a mesh whose device belongs to this process.
struct LocalPosition {
  std::int64_t position;
  const pjrt::Device* device;
};
/// The devices of `mesh`, in mesh order: all of them, unless the client has devices of several
/// processes.
/// @error as device_of, also for devices of other processes
std::vector<LocalPosition> local_positions(const pjrt::Client& client, const Mesh& mesh,
                                           SourceLocation where);

/// Where a program runs, as this process sees it.
enum class Reach : std::uint8_t {
  /// On devices of this process.
  kHere,
  /// On devices of this and of other processes.
  kAcross,
  /// On devices of other processes only.
  kElsewhere,
};
/// @pre the client has the devices
Reach reach_of(const pjrt::Client& client, const Mesh& mesh);

/// The processes that have a device of the mesh, ascending.
/// @pre the client has the devices
std::vector<int> processes_of(const pjrt::Client& client, const Mesh& mesh);

/// Whether each process that has a device of the sharding's mesh has all parts of the value.
/// @pre the client has the devices
bool is_whole_in_each_process(const pjrt::Client& client, const Sharding& sharding);

/// The device assignment of a program: the device ids of its logical devices 0..n-1. Logical device
/// i is position i of the program's mesh (LoweredModule::mesh). A program without a mesh runs on
/// the first device of this process.
/// @error as device_of
std::vector<int> device_assignment(const pjrt::Client& client, const std::optional<Mesh>& mesh,
                                   SourceLocation where);

}  // namespace meshard

// How a module from elsewhere is placed on a target.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/mesh/mesh.h"
#include "meshard/target/target.h"

namespace meshard {

/// The order in which a target's devices are assigned to mesh positions.
enum class DeviceOrder {
  kModule,  ///< the order of the mesh in the module, if it has one; otherwise kTorus
  kTorus,   ///< JAX 0.10's order for a mesh of this shape: along the torus, first axes over slices
  kIds,     ///< by device id
};

/// A mesh with these axes over a target's devices. Devices without coordinates are ordered by id.
/// @param devices how many devices to use, from the first; none: all
/// @error invalid argument: the axes' sizes do not match the number of devices (the message has
/// both numbers), or the target has fewer devices than requested.
Result<Mesh> mesh_on_target(std::vector<MeshAxis> axes, const Target& target, DeviceOrder order,
                            std::optional<std::int64_t> devices = std::nullopt);

/// `data=2,model=4`
std::string axes_text(std::span<const MeshAxis> axes, std::string_view separator = ",");

/// How to place a module from elsewhere on a target.
struct ModuleLayout {
  /// Axes that replace the module's own. Default: the module's own.
  std::vector<MeshAxis> axes = {};
  DeviceOrder order = DeviceOrder::kModule;
  /// The device id of each position of the mesh, as in the mesh of the user's program. Replaces
  /// `order`, and may be a part of the target's devices. Empty: by `order`.
  std::vector<std::int64_t> device_ids = {};
  /// Number of partitions. None: as the module declares.
  std::optional<std::int64_t> partitions = std::nullopt;
  /// Allows the module to use only the first devices of the target. Default: false.
  bool part_of_target = false;
};

}  // namespace meshard

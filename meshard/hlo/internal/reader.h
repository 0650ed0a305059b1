// Reads the messages inside a compiled module. Private to the sources of meshard/hlo.
#pragma once
#include <string_view>

#include "meshard/hlo/module.h"
#include "meshard/mesh/mesh.h"
#include "meshard/pjrt/wire.h"

namespace meshard::internal {

/// A mesh as it appears in the module, over logical devices.
struct ReadMesh {
  Mesh mesh;
  /// The module lists the devices; otherwise they are 0, 1, 2, ...
  bool has_order = false;
  /// The device order has a form that this reader does not support.
  bool unknown_order = false;
};

/// MeshProto {axes 1 {name 1, size 2}, device_ids 2}.
Result<ReadMesh> read_mesh(std::string_view bytes);
/// AxisRefProto {axis 1, sub-axis 2 {pre_size 1, size 2}}.
Result<AxisRef> read_axis_ref(std::string_view bytes, const Mesh& mesh);
/// ShapeProto.
Result<HloShape> read_shape(std::string_view bytes);
/// HloInstructionProto.
Result<HloInstruction> read_instruction(std::string_view bytes);
/// Reads a field of HloModuleProto that belongs to the interface, and skips any other.
Result<void> read_interface_field(const pjrt::WireField& field, HloInterface& to);
/// ReplicaGroup {replica_ids 1}.
Result<std::vector<std::int64_t>> read_replica_group(std::string_view bytes);
/// CollectiveDeviceListProto {replica_groups 1, iota_replica_group_list 2}.
Result<ReplicaGroups> read_device_list(std::string_view bytes);
/// IotaReplicaGroupListProto {groups 1, devices per group 2, reshape 3, transpose 4}.
Result<ReplicaGroups> read_iota_list(std::string_view bytes);
/// MeshAxesReplicaGroupListProto {mesh 1, axes 2}.
Result<ReplicaGroups> read_mesh_axes_list(std::string_view bytes);

}  // namespace meshard::internal

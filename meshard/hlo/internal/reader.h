// Reads the messages inside a compiled module. Private to the sources of meshard/pjrt.
#pragma once
#include <string_view>

#include "meshard/hlo/instruction.h"
#include "meshard/hlo/interface.h"
#include "meshard/pjrt/wire.h"

namespace meshard::internal {

/// A `data loss` error: the bytes of `what` are damaged.
Error damaged(std::string_view what);

/// ShapeProto.
Result<HloShape> read_shape(std::string_view bytes);
/// HloInstructionProto.
Result<HloInstruction> read_instruction(std::string_view bytes);
Result<HloMesh> read_mesh(std::string_view bytes);
Result<HloAxisRef> read_axis_ref(std::string_view bytes);
Result<HloNamedSharding> read_named_sharding(std::string_view bytes, int depth = 0);
Result<HloSharding> read_op_sharding(std::string_view bytes, int depth = 0);
/// Reads a field of HloModuleProto that belongs to the interface, and skips any other.
Result<void> read_interface_field(const pjrt::WireField& field, HloInterface& to);
/// Appends one ReplicaGroup {replica_ids 1}.
Result<void> read_replica_group(std::string_view bytes, ReplicaGroups& to);
/// CollectiveDeviceListProto {replica_groups 1, iota_replica_group_list 2}.
Result<void> read_device_list(std::string_view bytes, ReplicaGroups& to);
/// IotaReplicaGroupListProto {groups 1, devices per group 2, reshape 3, transpose 4}.
Result<void> read_iota_list(std::string_view bytes, ReplicaGroups& to);
/// MeshAxesReplicaGroupListProto {mesh 1, axes 2}.
Result<void> read_mesh_axes_list(std::string_view bytes, ReplicaGroups& to);

}  // namespace meshard::internal

// The rules for answers recorded from torch_xla: see tools/conformance/rules.h.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace meshard::conformance {

/// reshard-on-remark: marking a tensor otherwise than it is marked already reshards it, where the
/// reference raises an error. Ours must lie as the new mark says.
/// @param asked the new sharding as HLO text
/// @param our_state `{spec, data_sharding, ...}` of the tensor afterward
bool reshard_on_remark(const nlohmann::json& recorded_error, const std::string& asked,
                       const nlohmann::json& our_state);

/// short-spec: a partition spec may be shorter than the rank: the rest is not split. The reference
/// raises an error.
bool short_spec(const nlohmann::json& recorded_error, std::size_t spec_entries, std::size_t rank);

/// short-spec: a spec may be shorter than the rank, the rest is not split. The reference says that
/// it cannot be applied; ours that it can.
/// @param spec_entries, rank of the spec and of the tensor
bool short_spec(bool recorded_can_apply, bool ours_can_apply, std::size_t spec_entries,
                std::size_t rank);

/// short-spec: the reference's ShardingSpec forgets the axes that a short spec leaves over, and
/// calls a partial sharding tiled, without groups. Ours must have the type that its own rule for
/// meshes gives, and groups that deal out the recorded tile assignment evenly and in order.
/// @param recorded, ours `{sharding_type, get_op_sharding_type, tile_assignment,
/// replication_groups}`
bool short_spec(const nlohmann::json& recorded, const nlohmann::json& ours);

/// uneven-kept: a value whose size does not divide keeps its sharding when it is computed, where
/// the reference replicates it.
/// @param recorded, ours how it lies, as HLO text
/// @param shape of the value
bool uneven_kept(const std::string& recorded, const std::string& ours, const nlohmann::json& shape);

/// Transfers so far in a scenario.
struct TransferTotals {
  std::uint64_t buffers_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_read = 0;
  friend bool operator==(const TransferTotals&, const TransferTotals&) = default;
};

/// fewer-transfers: at no step did more buffers or bytes go to devices, or come back, than in the
/// reference: a value used without a mark goes only where its program wants it, resharding stays on
/// the devices, whole numbers are part of the program.
bool fewer_transfers(const TransferTotals& ours, const TransferTotals& recorded);

/// mesh-order-replicas: the devices of a group of replicas stand in mesh order, the reference sorts
/// them. Ours with each group ascending must be the recorded text.
bool mesh_order_replicas_in_text(const std::string& our_text, const std::string& recorded_text);

/// mesh-order-replicas: replicas are numbered in mesh order, the reference numbers them by
/// ascending device. The shards with the same indices must be numbered 0, 1, ... in the recorded
/// answer, and with the same numbers in ours. (Several empty tiles have the same indices; then each
/// number occurs as often as any other.)
/// @param our_shards, recorded_shards lists of `{indices, replica_id}` by ascending device
bool mesh_order_replicas(const nlohmann::json& our_shards, const nlohmann::json& recorded_shards);

/// two-core-and-single-slice-meshes: the reference refuses chips with two devices and a single
/// slice that has an index. The recorded error is one of those that it gives then, and ours is a
/// mesh with every device once.
/// @param our_mesh nested lists of device ids
bool two_core_and_single_slice_meshes(const nlohmann::json& recorded_error,
                                      const nlohmann::json& our_mesh, std::size_t devices);

/// no-abort: the reference's process died, or it could not compute or read a value that it had
/// accepted. Any error of ours is right, and so is the right value.
/// @param op of the step, `sync`, `read`, ...
bool no_abort(const nlohmann::json& recorded_error, const std::string& op);

}  // namespace meshard::conformance

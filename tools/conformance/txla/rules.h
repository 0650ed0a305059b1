// The rules for answers recorded from torch_xla; see tools/conformance/rules.h.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace meshard::conformance {

/// reshard-on-remark: marking a tensor with another sharding reshards it, where the reference
/// raises an error. Our tensor must have the sharding of the new mark.
/// @param asked the new sharding as HLO text
/// @param our_state `{spec, data_sharding, ...}` of the tensor afterward
bool reshard_on_remark(const nlohmann::json& recorded_error, const std::string& asked,
                       const nlohmann::json& our_state);

/// short-spec: a partition spec may be shorter than the rank; the remaining dimensions are not
/// split. The reference raises an error.
bool short_spec(const nlohmann::json& recorded_error, std::size_t spec_entries, std::size_t rank);

/// short-spec: a spec may be shorter than the rank; the remaining dimensions are not split. The
/// reference reports that it cannot be applied; we report that it can.
/// @param spec_entries, rank of the spec and of the tensor
bool short_spec(bool recorded_can_apply, bool ours_can_apply, std::size_t spec_entries,
                std::size_t rank);

/// short-spec: the reference's ShardingSpec ignores the axes that a short spec leaves over, and
/// calls a partial sharding tiled, without groups. Ours must have the type given by the reference's
/// own rule for meshes, and groups that divide the recorded tile assignment evenly and in order.
/// @param recorded, ours `{sharding_type, get_op_sharding_type, tile_assignment,
/// replication_groups}`
bool short_spec(const nlohmann::json& recorded, const nlohmann::json& ours);

/// uneven-kept: a computed value whose size is not divisible keeps its sharding, where the
/// reference replicates it.
/// @param recorded, ours the placement, as HLO text
/// @param shape of the value
bool uneven_kept(const std::string& recorded, const std::string& ours, const nlohmann::json& shape);

/// The transfers of a scenario so far.
struct TransferTotals {
  std::uint64_t buffers_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_read = 0;
  friend bool operator==(const TransferTotals&, const TransferTotals&) = default;
};

/// fewer-transfers: after no step have more buffers or bytes been sent to devices, or read back,
/// than in the reference. An unmarked value is sent only where its program needs it, resharding
/// stays on the devices, and integers are part of the program.
bool fewer_transfers(const TransferTotals& ours, const TransferTotals& recorded);

/// mesh-order-replicas: the devices of a group of replicas are in mesh order; the reference sorts
/// them. Ours must be equal to the recorded text after sorting each group.
bool mesh_order_replicas_in_text(const std::string& our_text, const std::string& recorded_text);

/// mesh-order-replicas: replicas are numbered in mesh order; the reference numbers them by
/// ascending device. Shards with the same indices must be numbered 0, 1, ... in the recorded
/// answer, and must have the same set of numbers in ours. (Several empty tiles have the same
/// indices; then each number must occur equally often.)
/// @param our_shards, recorded_shards lists of `{indices, replica_id}` by ascending device
bool mesh_order_replicas(const nlohmann::json& our_shards, const nlohmann::json& recorded_shards);

/// two-core-and-single-slice-meshes: the reference rejects chips with two devices, and a single
/// slice that has an index. The recorded error must be one of these, and ours must be a mesh with
/// every device once.
/// @param our_mesh nested lists of device ids
bool two_core_and_single_slice_meshes(const nlohmann::json& recorded_error,
                                      const nlohmann::json& our_mesh, std::size_t devices);

/// no-abort: the reference's process died, or it could not compute or read a value that it had
/// accepted. Any error of ours is correct, and so is the correct value.
/// @param op of the step, `sync`, `read`, ...
bool no_abort(const nlohmann::json& recorded_error, const std::string& op);

}  // namespace meshard::conformance

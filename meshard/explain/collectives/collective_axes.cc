#include "meshard/explain/collectives/collective_axes.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "meshard/mesh/axes_index.h"
#include "meshard/sharding/replica_groups.h"

namespace meshard {
namespace {

// True for collectives that carry `use_global_device_ids`. For others, the groups contain partition
// numbers whenever there is a channel.
bool has_global_ids_flag(std::string_view opcode) {
  return opcode.starts_with("all-reduce") || opcode.starts_with("all-gather") ||
         opcode.starts_with("reduce-scatter");
}

std::int64_t size_of(const Mesh& mesh, const AxisList& axes) {
  std::int64_t size = 1;
  for (const AxisRef& axis : axes) size *= mesh.axis_size(axis);
  return size;
}

// The axes in the newest form of groups, if the module's mesh has our axis names and order.
std::optional<AxisList> named_axes(const ReplicaGroups& groups, const Mesh& mesh) {
  const HloMesh& theirs = groups.mesh;
  if (!theirs.device_ids.empty() || theirs.unknown_order) return std::nullopt;
  bool equal = std::equal(
      theirs.axes.begin(), theirs.axes.end(), mesh.axes().begin(), mesh.axes().end(),
      [](const auto& a, const MeshAxis& b) { return a.name == b.name && a.size == b.size; });
  if (!equal) return std::nullopt;
  AxisList axes;
  for (const HloAxisRef& ref : groups.axes) {
    if (ref.axis < 0 || ref.axis >= static_cast<std::int64_t>(theirs.axes.size()))
      return std::nullopt;
    const std::string& name = theirs.axes[static_cast<std::size_t>(ref.axis)].name;
    axes.push_back(ref.part ? AxisRef(name, ref.part->pre_size, ref.part->size) : AxisRef(name));
  }
  return remaining_axes(mesh, remaining_axes(mesh, axes));  // in mesh order
}

std::optional<AxisList> iota_axes(const ReplicaGroups& groups, const Mesh& mesh) {
  IotaGroups iota{.count = groups.group_count,
                  .group_size = groups.group_size,
                  .reshape_dims = groups.iota.dimensions,
                  .transpose_perm = groups.iota.permutation};
  if (iota.transpose_perm.empty()) {
    iota.transpose_perm.resize(iota.reshape_dims.size());
    std::iota(iota.transpose_perm.begin(), iota.transpose_perm.end(), 0);
  }
  return axes_of_groups(mesh, iota);
}

// True if the groups contain only the number 0.
bool names_one_replica(const ReplicaGroups& groups) {
  if (groups.form == ReplicaGroups::Form::kNone) return true;
  if (groups.form == ReplicaGroups::Form::kIota)
    return groups.group_count == 1 && groups.group_size == 1;
  return groups.form == ReplicaGroups::Form::kListed && groups.listed.size() == 1 &&
         groups.listed[0].size() <= 1;
}

AxisList all_axes(const Mesh& mesh) { return remaining_axes(mesh, {}); }

// The shift from source to target along `axes`, if it is the same for every pair.
std::optional<AxisShift> common_shift(const Mesh& mesh, const AxisList& axes, PositionPairs pairs) {
  AxesIndex index(mesh, axes);
  std::int64_t n = index.size();
  std::optional<std::int64_t> common;
  bool wraps = false;
  for (const auto& [source, target] : pairs) {
    std::int64_t distance = index(target) - index(source);
    std::int64_t by = (distance % n + n) % n;
    if (common && *common != by) return std::nullopt;
    common = by;
  }
  if (!common) return std::nullopt;
  std::int64_t by = *common > n / 2 ? *common - n : *common;
  for (const auto& [source, target] : pairs)
    if (index(target) - index(source) != by) wraps = true;
  return AxisShift{.axes = axes, .by = by, .wraps = wraps};
}

}  // namespace

Result<GroupAxes> axes_of_instruction(const HloInstruction& instruction, const Mesh& mesh) {
  const ReplicaGroups& groups = instruction.groups;
  // Without a channel, groups contain replica numbers. Programs have one replica, so no data leaves
  // a device.
  if (instruction.channel_id == 0 && names_one_replica(groups)) return GroupAxes{AxisList(), 1};
  // Groups of replicas, each with all its partitions.
  if (has_global_ids_flag(instruction.opcode) && !instruction.use_global_device_ids)
    return GroupAxes{all_axes(mesh), mesh.size()};
  std::optional<AxisList> axes;
  switch (groups.form) {
    case ReplicaGroups::Form::kNone: axes = all_axes(mesh); break;
    case ReplicaGroups::Form::kIota: axes = iota_axes(groups, mesh); break;
    case ReplicaGroups::Form::kMeshAxes: axes = named_axes(groups, mesh); break;
    case ReplicaGroups::Form::kListed: break;
  }
  if (axes) return GroupAxes{axes, size_of(mesh, *axes)};
  if (groups.form == ReplicaGroups::Form::kIota) return GroupAxes{std::nullopt, groups.group_size};
  MESHARD_ASSIGN_OR_RETURN(std::vector<std::vector<std::int64_t>> listed, groups.expand());
  // XLA may write a list with one empty group for "all devices".
  std::erase_if(listed, [](const auto& group) { return group.empty(); });
  axes = axes_of_groups(mesh, listed);
  if (axes) return GroupAxes{axes, size_of(mesh, *axes)};
  std::size_t largest = 0;
  for (const auto& group : listed) largest = std::max(largest, group.size());
  return GroupAxes{std::nullopt, static_cast<std::int64_t>(largest)};
}

PermutationAxes axes_of_permutation(const Mesh& mesh, PositionPairs pairs) {
  std::vector<AxesIndex> index;
  for (const MeshAxis& axis : mesh.axes()) index.emplace_back(mesh, AxisList{AxisRef(axis.name)});
  std::vector<bool> moves(mesh.rank(), false);
  for (const auto& [source, target] : pairs) {
    if (source < 0 || target < 0 || source >= mesh.size() || target >= mesh.size()) return {};
    for (std::size_t i = 0; i < index.size(); ++i)
      if (index[i](source) != index[i](target)) moves[i] = true;
  }
  AxisList axes;
  std::vector<AxisShift> shifts;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (!moves[i]) continue;
    axes.push_back(AxisRef(mesh.axes()[i].name));
    if (auto shift = common_shift(mesh, AxisList{axes.back()}, pairs))
      shifts.push_back(std::move(*shift));
  }
  if (shifts.size() != axes.size()) {
    shifts.clear();
    if (axes.size() > 1)
      if (auto shift = common_shift(mesh, axes, pairs)) shifts.push_back(std::move(*shift));
  }
  return {std::move(axes), std::move(shifts)};
}

}  // namespace meshard

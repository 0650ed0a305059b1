#include "meshard/explain/collectives/collective_axes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "meshard/base/cat.h"
#include "meshard/mesh/axes_index.h"

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

// True if the groups contain only the number 0.
bool names_one_replica(const ReplicaGroups& groups) {
  if (groups.iota) return groups.iota->count == 1 && groups.iota->group_size == 1;
  return !groups.given() || (groups.listed.size() == 1 && groups.listed[0].size() <= 1);
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
  if (!groups.given()) axes = all_axes(mesh);
  if (groups.iota) axes = axes_of_groups(mesh, *groups.iota);
  if (axes) return GroupAxes{axes, size_of(mesh, *axes)};
  if (groups.iota) {
    MESHARD_RETURN_IF_ERROR(groups.iota->validate());
    return GroupAxes{std::nullopt, groups.iota->group_size};
  }
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

std::optional<SliceNumbering> SliceNumbering::of(const HloModule& module, const Mesh& mesh,
                                                 const Topology& topology) {
  std::unordered_map<std::int64_t, std::int64_t> slice_of;
  for (const DeviceAttributes& device : topology.devices())
    if (device.slice_index) slice_of.emplace(device.id, *device.slice_index);
  std::map<std::int64_t, std::vector<std::int64_t>> slices;
  for (std::int64_t position = 0; position < mesh.size(); ++position) {
    auto slice = slice_of.find(mesh.device_id(position));
    if (slice == slice_of.end()) return std::nullopt;
    slices[slice->second].push_back(position);
  }
  if (slices.size() < 2) return std::nullopt;
  Groups positions;
  for (auto& [slice, held] : slices) {
    if (held.size() != module.device_assignment.size()) return std::nullopt;
    positions.push_back(std::move(held));
  }
  return SliceNumbering(std::move(positions));
}

Result<std::int64_t> SliceNumbering::position(std::size_t slice, std::int64_t number) const {
  if (number < 0 || number >= std::ssize(slices_[slice]))
    return Error(ErrorCode::kOutOfRange,
                 cat("[explain] device ", number, " is out of range for a slice with ",
                     slices_[slice].size(), " devices"));
  return slices_[slice][static_cast<std::size_t>(number)];
}

Result<SliceNumbering::Groups> SliceNumbering::positions(Groups groups) const {
  if (groups.empty()) {
    groups.emplace_back(slices_[0].size());
    std::iota(groups[0].begin(), groups[0].end(), 0);
  }
  Groups all;
  for (std::size_t slice = 0; slice < slices_.size(); ++slice)
    for (const std::vector<std::int64_t>& group : groups) {
      all.emplace_back();
      for (std::int64_t number : group) {
        MESHARD_ASSIGN_OR_RETURN(std::int64_t held, position(slice, number));
        all.back().push_back(held);
      }
    }
  return all;
}

Result<std::vector<std::pair<std::int64_t, std::int64_t>>> SliceNumbering::positions(
    const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  for (std::size_t slice = 0; slice < slices_.size(); ++slice)
    for (const auto& pair : pairs) {
      MESHARD_ASSIGN_OR_RETURN(std::int64_t source, position(slice, pair.first));
      MESHARD_ASSIGN_OR_RETURN(std::int64_t target, position(slice, pair.second));
      all.emplace_back(source, target);
    }
  return all;
}

SliceNumbering::Groups SliceNumbering::across() const {
  Groups all(slices_[0].size());
  for (const std::vector<std::int64_t>& slice : slices_)
    for (std::size_t number = 0; number < slice.size(); ++number)
      all[number].push_back(slice[number]);
  return all;
}

}  // namespace meshard

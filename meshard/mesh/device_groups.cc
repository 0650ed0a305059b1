#include "meshard/mesh/device_groups.h"

namespace meshard {

AxisGroups::AxisGroups(const Mesh& mesh, const AxisList& axes) {
  AxisList rest = remaining_axes(mesh, axes);
  base_ = AxesIndex(mesh, rest);
  member_ = AxesIndex(mesh, remaining_axes(mesh, rest));  // the axes again, in mesh order
}

std::vector<std::int64_t> AxisGroups::group(std::int64_t g) const {
  if (g < 0 || g >= count())
    throw Error(ErrorCode::kOutOfRange,
                cat("[mesh] group index ", g, " is out of range for ", count(), " groups"));
  std::vector<std::int64_t> positions(static_cast<std::size_t>(group_size()));
  for (std::size_t k = 0; k < positions.size(); ++k)
    positions[k] = member(g, static_cast<std::int64_t>(k));
  return positions;
}

std::vector<std::vector<std::int64_t>> AxisGroups::groups() const {
  std::vector<std::vector<std::int64_t>> all(static_cast<std::size_t>(count()));
  for (std::size_t g = 0; g < all.size(); ++g) all[g] = group(static_cast<std::int64_t>(g));
  return all;
}

std::int64_t DeviceGroup::operator[](std::int64_t k) const {
  if (k < 0 || k >= size())
    throw Error(ErrorCode::kOutOfRange,
                cat("[mesh] member index ", k, " is out of range for a group of size ", size()));
  return family_->rank_map[offset_ + family_->digits.offset(k)];
}

std::vector<std::int64_t> DeviceGroup::to_vector() const {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(size()));
  for (std::size_t k = 0; k < ids.size(); ++k) ids[k] = (*this)[static_cast<std::int64_t>(k)];
  return ids;
}

std::optional<std::int64_t> DeviceGroup::local_rank(std::int64_t device_id) const {
  std::optional<std::int64_t> index = family_->rank_map.find(device_id);
  if (!index || *index < offset_ || !family_->digits.covers(*index - offset_)) return std::nullopt;
  return family_->digits(*index);
}

std::optional<std::int64_t> DeviceGroup::sorted_local_rank(std::int64_t device_id) const {
  if (!local_rank(device_id)) return std::nullopt;
  return ranks().count_below(device_id);
}

DeviceGroup DeviceGroups::operator[](std::int64_t g) const {
  if (g < 0 || g >= count())
    throw Error(ErrorCode::kOutOfRange,
                cat("[mesh] group index ", g, " is out of range for ", count(), " groups"));
  return DeviceGroup(family_, offset_ + rows_.offset(g), root_);
}

std::optional<std::int64_t> DeviceGroups::find(std::int64_t device_id) const {
  std::optional<std::int64_t> index = family_->rank_map.find(device_id);
  if (!index || *index < offset_ || !domain_.covers(*index - offset_)) return std::nullopt;
  return rows_(*index - offset_);
}

std::optional<DeviceGroup> DeviceGroups::of(std::int64_t device_id) const {
  std::optional<std::int64_t> g = find(device_id);
  if (!g) return std::nullopt;
  return (*this)[*g];
}

std::vector<std::vector<std::int64_t>> DeviceGroups::to_vectors() const {
  std::vector<std::vector<std::int64_t>> all;
  for (std::int64_t g = 0; g < count(); ++g) all.push_back((*this)[g].to_vector());
  return all;
}

}  // namespace meshard

#include "meshard/explain/collectives/slice_numbering.h"

#include <map>
#include <numeric>
#include <unordered_map>

#include "meshard/base/cat.h"

namespace meshard {

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

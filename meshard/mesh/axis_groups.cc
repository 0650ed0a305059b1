#include "meshard/mesh/axis_groups.h"

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

}  // namespace meshard

#include "meshard/mesh/picture.h"

#include "meshard/layout/picture.h"
#include "meshard/mesh/device_groups.h"

namespace meshard {
namespace {

// The color of a device is the number of its group.
std::vector<Grid> device_grids(const Mesh& mesh, const AxisList& group_by) {
  DeviceIds ids = mesh.device_ids();
  if (ids.size() > kMostCells)
    throw_invalid({}, "[picture] ", ids.size(), " devices are too many to draw; the limit is ",
                  kMostCells);
  DeviceGroups groups = mesh.groups(group_by);
  std::size_t rank = mesh.rank();
  std::int64_t columns = rank >= 1 ? mesh.shape()[rank - 1] : 1;
  std::int64_t lines = rank >= 2 ? mesh.shape()[rank - 2] : 1;
  std::vector<Grid> grids;
  for (std::int64_t at = 0; at < ids.size();) {
    Grid grid;
    if (mesh.rows() > 1) grid.title = cat("row ", at / mesh.size(), " of ", mesh.rows());
    IntVector coordinate = mesh.coordinate_at(at % mesh.size());
    for (std::size_t i = 0; i + 2 < rank; ++i)  // which grid: the index along each outer axis
      append(grid.title,
             cat(grid.title.empty() ? "" : ", ", mesh.axes()[i].name, " = ", coordinate[i]));
    if (rank >= 2) grid.down = mesh.axes()[rank - 2].name;
    if (rank >= 1) grid.across = mesh.axes()[rank - 1].name;
    for (std::int64_t r = 0; r < lines; ++r) {
      grid.cells.emplace_back();
      for (std::int64_t c = 0; c < columns; ++c, ++at)
        grid.cells.back().push_back({cat(ids[at]), {*groups.find(ids[at])}});
    }
    grids.push_back(std::move(grid));
  }
  return grids;
}

}  // namespace

std::string picture(const Mesh& mesh) { return grid_picture(device_grids(mesh, {})); }

std::string picture_svg(const Mesh& mesh) { return picture_svg(mesh, {}); }

std::string picture_svg(const Mesh& mesh, const AxisList& group_by) {
  return grid_picture_svg(device_grids(mesh, group_by));
}

}  // namespace meshard

#include "meshard/mesh/picture.h"

#include "meshard/mesh/grid_picture.h"

namespace meshard {
namespace {

constexpr std::int64_t kMostDevices = 4096;

}  // namespace

std::string picture(const Mesh& mesh) {
  if (mesh.size() > kMostDevices)
    throw_invalid({}, "[picture] ", mesh.size(), " devices are too many to draw; the most is ",
                  kMostDevices);
  std::size_t rank = mesh.rank();
  std::int64_t columns = rank >= 1 ? mesh.shape()[rank - 1] : 1;
  std::int64_t rows = rank >= 2 ? mesh.shape()[rank - 2] : 1;
  std::string out;
  for (std::int64_t start = 0; start < mesh.size(); start += rows * columns) {
    if (rank > 2) {  // which grid: the index along each of the outer axes
      IntVector coordinate = mesh.coordinate_at(start);
      for (std::size_t i = 0; i + 2 < rank; ++i)
        append(out, cat(i == 0 ? "" : ", ", mesh.axes()[i].name, " = ", coordinate[i]));
      out += '\n';
    }
    std::vector<std::vector<std::string>> cells(static_cast<std::size_t>(rows));
    for (std::size_t r = 0; r < cells.size(); ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        cells[r].push_back(cat(mesh.device_id(start + static_cast<std::int64_t>(r) * columns + c)));
    append(out, grid_picture(cells, rank >= 2 ? std::string_view(mesh.axes()[rank - 2].name) : "",
                             rank >= 1 ? std::string_view(mesh.axes()[rank - 1].name) : ""));
  }
  return out;
}

}  // namespace meshard

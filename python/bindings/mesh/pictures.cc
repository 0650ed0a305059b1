// Pictures of meshes, shardings and layouts.
#include <optional>

#include "meshard/base/error.h"
#include "meshard/layout/picture.h"
#include "meshard/mesh/picture.h"
#include "meshard/sharding/picture.h"
#include "meshard/sharding/tile_grid.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/mesh/mesh_casters.h"
#include "python/bindings/mesh/mesh_parts.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

using Text = std::pair<std::string, std::string>;  // box characters, SVG

// The tiles of a tensor of this shape: the indices that each tile holds, and its devices.
std::vector<Grid> grids_of(const Sharding& sharding, const Dimensions& shape) {
  return drawn_tiles(sharding, [&](const std::vector<std::int64_t>& positions, std::string ids) {
    return cat(to_string(sharding.slice(shape, positions[0])), " on ", ids);
  });
}

}  // namespace

void bind_pictures(nb::module_& module) {
  module.def("draw", [](const Mesh& mesh, const AxisList& group_by) {
    return Text(picture(mesh), picture_svg(mesh, group_by));
  });
  module.def("draw", [](const Sharding& sharding) {
    return Text(picture(sharding), picture_svg(sharding));
  });
  module.def("draw", [](const Sharding& sharding, const Dimensions& shape) {
    const std::vector<Grid> grids = grids_of(
        sharding.with_rank(std::max(sharding.rank(), shape.size()), SourceLocation{}), shape);
    return Text(grid_picture(grids), grid_picture_svg(grids));
  });
  module.def("draw",
             [](const Layout& layout) { return Text(picture(layout), picture_svg(layout)); });
}

}  // namespace meshard::python

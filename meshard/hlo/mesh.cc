// Tested in meshard/hlo/sharding_test.cc.
// Meshes and references to their axes.
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/hlo/internal/reader.h"

namespace meshard::internal {

using pjrt::damaged;
using pjrt::field;
using pjrt::read_message;

Result<ReadMesh> read_mesh(std::string_view bytes) {
  ReadMesh read;
  std::vector<MeshAxis> axes;
  std::vector<std::int64_t> devices;
  auto axis = [&](std::string_view part) -> Result<MeshAxis> {
    MeshAxis one;
    one.size = 0;
    MESHARD_RETURN_IF_ERROR(
        read_message(part, "a mesh axis", field(1, one.name), field(2, one.size)));
    // Other frameworks allow other names; sizes and devices tell the axes apart.
    if (!is_axis_name(one.name)) one.name = cat("axis_", axes.size());
    return one;
  };
  auto unknown = [&](const pjrt::WireField&) { read.unknown_order = true; };
  MESHARD_RETURN_IF_ERROR(read_message(bytes, "a mesh", field(1, axes, axis), field(2, devices),
                                       pjrt::on_field(3, unknown)));
  read.has_order = !devices.empty();
  try {
    read.mesh = read.has_order ? Mesh(std::move(axes), std::move(devices)) : Mesh(std::move(axes));
  } catch (const Error&) {  // sizes and devices that do not fit
    return damaged("a mesh");
  }
  return read;
}

Result<AxisRef> read_axis_ref(std::string_view bytes, const Mesh& mesh) {
  using Part = std::pair<std::int64_t, std::int64_t>;
  std::uint64_t axis = 0;
  std::optional<Part> part;
  auto read_part = [](std::string_view inner) -> Result<Part> {
    Part to{0, 0};
    MESHARD_RETURN_IF_ERROR(
        read_message(inner, "a part of an axis", field(1, to.first), field(2, to.second)));
    if (to.first < 1 || to.second < 1) return damaged("a part of an axis");
    return to;
  };
  MESHARD_RETURN_IF_ERROR(
      read_message(bytes, "an axis", field(1, axis), field(2, part, read_part)));
  if (axis >= mesh.rank()) return damaged("an axis");
  const std::string& name = mesh.axes()[axis].name;
  return part ? AxisRef(name, part->first, part->second) : AxisRef(name);
}

}  // namespace meshard::internal

#include "meshard/mesh/builders.h"

namespace meshard {
namespace {

std::string numbered_axis(std::size_t i) { return cat("axis_", i); }

}  // namespace

std::vector<MeshAxis> mesh_axes(IntView shape, const MaybeNames& names, SourceLocation where) {
  if (names && names->size() != shape.size())
    throw_invalid(where, "[mesh] ", names->size(), " axis names (", join(*names, ", "), ") for ",
                  shape.size(), " sizes (", join(shape, ", "), ")");
  std::vector<MeshAxis> axes;
  for (std::size_t i = 0; i < shape.size(); ++i)
    axes.push_back({names ? (*names)[i] : numbered_axis(i), shape[i]});
  return axes;
}

bool axes_are_unnamed(const Mesh& mesh) {
  for (std::size_t i = 0; i < mesh.rank(); ++i)
    if (mesh.axes()[i].name != numbered_axis(i)) return false;
  return true;
}

Mesh mesh_1d(std::int64_t device_count, std::string name, SourceLocation where) {
  return Mesh({{std::move(name), device_count}}, where);
}

Mesh mesh_on(std::int64_t device_count, std::vector<MeshAxis> axes,
             std::vector<std::int64_t> device_ids, SourceLocation where) {
  if (std::ssize(device_ids) > device_count)
    throw_invalid(where, "[mesh] ", device_ids.size(), " devices are listed, but there are only ",
                  device_count);
  for (std::int64_t id : device_ids)
    if (id < 0 || id >= device_count)
      throw_invalid(where, "[mesh] there is no device ", id, "; devices are 0 to ",
                    device_count - 1);
  return Mesh(std::move(axes), std::move(device_ids), where);
}

}  // namespace meshard

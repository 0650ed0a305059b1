// Tested in meshard/hlo/sharding_test.cc.
// Meshes and references to their axes.
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/hlo/internal/reader.h"

namespace meshard::internal {

Error damaged(std::string_view what) {
  return Error(ErrorCode::kDataLoss, cat("[hlo] the bytes of ", what, " are damaged"));
}

Result<ReadMesh> read_mesh(std::string_view bytes) {
  ReadMesh read;
  std::vector<MeshAxis> axes;
  std::vector<std::int64_t> devices;
  pjrt::WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) {
      MeshAxis axis;
      axis.size = 0;
      pjrt::WireReader inner(field->bytes);
      while (auto part = inner.next()) {
        if (part->number == 1) axis.name = part->bytes;
        if (part->number == 2) axis.size = part->as_int();
      }
      if (!inner.ok()) return damaged("a mesh axis");
      // Other frameworks allow other names; sizes and devices tell the axes apart.
      if (!is_axis_name(axis.name)) axis.name = cat("axis_", axes.size());
      axes.push_back(std::move(axis));
    }
    if (field->number == 2 && !append_numbers(*field, devices)) return damaged("a mesh");
    if (field->number == 3) read.unknown_order = true;
  }
  if (!reader.ok()) return damaged("a mesh");
  read.has_order = !devices.empty();
  try {
    read.mesh = read.has_order ? Mesh(std::move(axes), std::move(devices)) : Mesh(std::move(axes));
  } catch (const Error&) {  // sizes and devices that do not fit
    return damaged("a mesh");
  }
  return read;
}

Result<AxisRef> read_axis_ref(std::string_view bytes, const Mesh& mesh) {
  std::uint64_t axis = 0;
  std::optional<std::pair<std::int64_t, std::int64_t>> part;
  pjrt::WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) axis = field->value;
    if (field->number != 2) continue;
    part.emplace(0, 0);
    pjrt::WireReader inner(field->bytes);
    while (auto number = inner.next()) {
      if (number->number == 1) part->first = number->as_int();
      if (number->number == 2) part->second = number->as_int();
    }
    if (!inner.ok() || part->first < 1 || part->second < 1) return damaged("a part of an axis");
  }
  if (!reader.ok() || axis >= mesh.rank()) return damaged("an axis");
  const std::string& name = mesh.axes()[axis].name;
  return part ? AxisRef(name, part->first, part->second) : AxisRef(name);
}

}  // namespace meshard::internal

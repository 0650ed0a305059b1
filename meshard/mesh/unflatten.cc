// Mesh::unflatten, reshape: split one axis into several, or replace all axes.
#include "meshard/mesh/mesh.h"

namespace meshard {

// Cuts an axis into parts, major first. The parts have the axis's kind.
Mesh::Axes Mesh::parts_of(const Axis& axis, const std::vector<MeshAxis>& parts,
                          SourceLocation where) const {
  check_mesh_axes(parts, where);
  std::int64_t size = 1;
  for (const MeshAxis& part : parts) size *= part.size;
  if (size != axis.digits.size())
    throw_invalid(where, "[mesh] parts of ", size, " positions cannot replace the ",
                  axis.digits.size(), " positions of axis \"", axis.name, "\" in ", *this);
  Axes cut_axes;
  for (const MeshAxis& part : parts) {
    size /= part.size;
    Result<Digits> piece = cut(axis.digits, part.size, size);
    if (part.kind == AxisKind::kExplicit && axis.kind == AxisKind::kAuto)
      throw_invalid(where, "[mesh] \"", part.name, "\" cannot be explicit: it is a part of \"",
                    axis.name, "\", which is auto, in ", *this);
    if (!piece)
      throw_invalid(where, "[mesh] axis \"", axis.name, "\" = ", axis.digits.layout(),
                    " cannot be cut at \"", part.name, "\" = ", part.size, ": ",
                    piece.error().message());
    cut_axes.push_back({part.name, *piece, axis.kind});
  }
  return cut_axes;
}

Mesh Mesh::unflatten(std::string_view name, std::vector<MeshAxis> parts,
                     SourceLocation where) const {
  Axis axis = axes_named(name, where)[0];
  if (parts.empty())
    throw_invalid(where, "[mesh] no parts are given for axis \"", name, "\" of ", *this,
                  "; to drop an axis of size 1, use squeeze");
  Axes pieces = parts_of(axis, parts, where), result;
  bool placed = false;
  for (std::size_t i = 0; i < rank(); ++i) {
    if (axes()[i].name != name || placed) {
      result.push_back({axes()[i].name, axis_digits(i), axes()[i].kind});
      continue;
    }
    result.insert(result.end(), pieces.begin(), pieces.end());
    placed = true;
  }
  return derive(result, where);
}

Mesh Mesh::reshape(std::vector<MeshAxis> wanted, SourceLocation where) const {
  std::string all;
  for (const MeshAxis& axis : axes()) append(all, cat(all.empty() ? "" : ", ", axis.name));
  return derive(parts_of({all, merged(all_axes()), merged_kind(all_axes(), where)}, wanted, where),
                where);
}

}  // namespace meshard

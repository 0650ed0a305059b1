#include "meshard/mesh/axis_set.h"

#include "meshard/base/error.h"

namespace meshard {
namespace {

void check_axis_count(const Mesh& mesh, SourceLocation where) {
  if (mesh.rank() > 64)
    throw_invalid(where, "[mesh] axis sets support meshes of at most 64 axes, not ", mesh);
}

}  // namespace

AxisSet::AxisSet(const Mesh& mesh, const AxisList& axes, SourceLocation where) {
  check_axis_count(mesh, where);
  for (const AxisRef& given : axes) {
    AxisRef axis = mesh.named(given, where);
    auto index = mesh.find_axis(axis.name);
    if (!index) throw_invalid(where, "[mesh] ", mesh, " has no axis ", axis);
    if (!axis.is_whole())
      throw_invalid(where, "[mesh] ", axis, " is a part of an axis of ", mesh,
                    ": only whole axes are allowed here (unflatten the mesh to name a part)");
    if (contains(*index)) throw_invalid(where, "[mesh] axis ", axis, " is named twice");
    bits_ |= std::uint64_t{1} << *index;
  }
}

AxisSet AxisSet::all(const Mesh& mesh, SourceLocation where) {
  check_axis_count(mesh, where);
  std::size_t count = mesh.rank();
  return AxisSet(count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1);
}

AxisList AxisSet::of(const Mesh& mesh) const {
  AxisList axes;
  for (std::size_t i = 0; i < mesh.rank(); ++i)
    if (contains(i)) axes.push_back(AxisRef(mesh.axes()[i].name));
  return axes;
}

}  // namespace meshard

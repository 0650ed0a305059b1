#include "meshard/mesh/concatenate.h"

namespace meshard {

Mesh concatenate(std::span<const Mesh> meshes, SourceLocation where) {
  if (meshes.empty()) throw_invalid(where, "[mesh] concatenate requires at least one mesh");
  Mesh::Axes all;
  for (const Mesh& mesh : meshes) {
    const Mesh::State &first = meshes[0].base_state(), &base = mesh.base_state();
    if (&first != &base && (first.rank_map != base.rank_map || first.domain != base.domain ||
                            first.offset != base.offset))
      throw_invalid(where, "[mesh] meshes of different devices cannot be concatenated: ", meshes[0],
                    " of ", meshes[0].base(), " and ", mesh, " of ", mesh.base());
    if (meshes[0].root_state().properties != mesh.root_state().properties)
      throw_invalid(where,
                    "[mesh] meshes with different device types or rules for uneven sizes "
                    "cannot be concatenated: ",
                    meshes[0].root(), " and ", mesh.root());
    for (Mesh::Axis& axis : mesh.all_axes()) all.push_back(std::move(axis));
  }
  return meshes[0].derive(all, where);
}

Mesh concatenate(std::initializer_list<Mesh> meshes, SourceLocation where) {
  return concatenate(std::span<const Mesh>(meshes.begin(), meshes.size()), where);
}

}  // namespace meshard

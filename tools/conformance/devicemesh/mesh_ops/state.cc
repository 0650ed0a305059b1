#include "tools/conformance/devicemesh/mesh_ops/state.h"

namespace meshard::conformance {

void Handles::add(std::string name, MeshEntry entry) {
  all_.push_back({std::move(name), std::move(entry)});
}

const MeshEntry* Handles::find(const std::string& name) const {
  for (const Handle& handle : all_)
    if (handle.name == name) return &handle.entry;
  return nullptr;
}

Json Handles::name_of(const Mesh& mesh) const {
  for (const Handle& handle : all_)
    if (handle.entry.mesh.is_same_object(mesh)) return handle.name;
  return {};
}

std::string GroupIds::id(std::int64_t rank, const DeviceGroup& group, const std::string& where) {
  std::vector<Seen>& seen = by_rank_[rank];
  for (const Seen& each : seen)
    if (each.group.is_same_object(group)) return each.name;
  seen.push_back({group, where});
  return where;
}

}  // namespace meshard::conformance

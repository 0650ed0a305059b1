// Mesh::submesh, submeshes: fewer devices, the same root.
#include "meshard/mesh/submeshes.h"

namespace meshard {

// The axes over the devices that differ along them from the one at `index` of the root's rank map.
Mesh Mesh::submesh_at(const Axes& axes, std::int64_t index, SourceLocation where) const {
  Digits all = merged(axes);
  // All devices of the base: then it is a view of the base, and meets it in one program.
  if (all.size() == base_state().domain.size()) return derive(axes, where);
  std::shared_ptr<State> state = state_of(axes, all, where);
  state->offset = index - all.offset(all(index));
  state->rank_map = root_state().rank_map.view(state->offset, all);
  state->root = state_->root ? state_->root : state_;
  state->domain = all.sorted();
  return finished(std::move(state));
}

std::optional<Mesh> Mesh::submesh(const AxisNames& names, std::int64_t device_id,
                                  SourceLocation where) const {
  Axes chosen = slice(names, where).all_axes();
  std::optional<std::int64_t> index = index_of(device_id);
  if (!index) return std::nullopt;
  return submesh_at(chosen, *index, where);
}

Submeshes Mesh::submeshes(const AxisNames& names, SourceLocation where) const {
  Axes chosen = slice(names, where).all_axes();
  Digits rows = base_state().domain.without(merged(chosen));
  return Submeshes(*this, std::move(chosen), std::move(rows), where);
}

Mesh Submeshes::operator[](std::int64_t i) const {
  if (i < 0 || i >= size())
    throw Error(ErrorCode::kOutOfRange, cat("[mesh] submesh ", i, " of ", size()));
  return mesh_.submesh_at(axes_, mesh_.state_->offset + rows_.offset(i), where_);
}

}  // namespace meshard

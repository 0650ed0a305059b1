// Mesh::submesh, submeshes: fewer devices, the same root.
#include "meshard/mesh/submeshes.h"

namespace meshard {

// The mesh with these axes that contains the device at `index` of the root's rank map.
Mesh Mesh::submesh_at(const Axes& axes, std::int64_t index, SourceLocation where) const {
  Digits all = merged(axes);
  // With all devices of the base it is a view of the base, so that both can be used in one program.
  if (all.size() == base_state().domain.size()) return derive(axes, where);
  std::shared_ptr<State> state = state_of(axes, all, where);
  state->offset = index - all.offset(all(index));
  state->rank_map = root_state().rank_map.view(state->offset, all);
  state->root = state_->root ? state_->root : state_;
  state->domain = all;
  return finished(std::move(state));
}

Mesh::Axes Mesh::submesh_axes(const AxisNames& names, SourceLocation where) const {
  for (std::size_t i = 0; i < names.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (names[i] == names[j])
        throw_invalid(where, "[mesh] axis \"", names[i], "\" is named twice for a submesh of ",
                      *this);
  return slice(names, where).all_axes();
}

std::optional<Mesh> Mesh::submesh(const AxisNames& names, std::int64_t device_id,
                                  SourceLocation where) const {
  Axes chosen = submesh_axes(names, where);
  std::optional<std::int64_t> index = index_of(device_id);
  if (!index) return std::nullopt;
  return submesh_at(chosen, *index, where);
}

Submeshes Mesh::submeshes(const AxisNames& names, SourceLocation where) const {
  Axes chosen = submesh_axes(names, where);
  Digits rows = base_state().domain.without(merged(chosen));
  return Submeshes(*this, std::move(chosen), std::move(rows), where);
}

Mesh Submeshes::operator[](std::int64_t i) const {
  if (i < 0 || i >= size())
    throw Error(
        ErrorCode::kOutOfRange,
        cat("[mesh] submesh index ", i, " is out of range: the number of submeshes is ", size()));
  return mesh_.submesh_at(axes_, mesh_.state_->offset + rows_.offset(i), where_);
}

}  // namespace meshard

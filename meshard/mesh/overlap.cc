#include "meshard/mesh/overlap.h"

namespace meshard {

Overlap overlap(const Mesh& first, const Mesh& second) {
  RankMap a = first.base().rank_map(), b = second.base().rank_map();  // in base order: all rows
  if (a.same_devices(b)) return Overlap::kSame;
  if (b.contains(a)) return Overlap::kFirstInSecond;
  if (a.contains(b)) return Overlap::kSecondInFirst;
  return a.meets(b) ? Overlap::kSome : Overlap::kNone;
}

std::string_view to_string(Overlap overlap) {
  switch (overlap) {
    case Overlap::kNone: return "none";
    case Overlap::kSome: return "some";
    case Overlap::kFirstInSecond: return "first in second";
    case Overlap::kSecondInFirst: return "second in first";
    case Overlap::kSame: break;
  }
  return "same";
}

bool Mesh::is_submesh_of(const Mesh& other) const {
  if (!same_root(other)) return false;
  // Along our digits nothing may change that tells other's rows, or its devices, apart.
  Digits whole = Digits::whole(root_state().rank_map.size());
  Digits fixed = whole.without(merged(other.all_axes()));
  if (fixed.meets(merged(all_axes()))) return false;
  Digits outside = whole.without(other.base_state().domain);
  return !outside.meets(base_state().domain) &&
         outside(state_->offset) == outside(other.state_->offset);
}

}  // namespace meshard

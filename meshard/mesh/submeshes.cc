#include "meshard/mesh/submeshes.h"

#include "meshard/mesh/device_type.h"

namespace meshard {

Overlap overlap(const Mesh& first, const Mesh& second) {
  if (!same_platform(first, second)) return Overlap::kNone;
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
  using Effect = Digits::Effect;
  if (!same_root(other)) return false;
  // A step along our digits must not change the digits that distinguish other's rows or devices.
  Digits whole = Digits::whole(root_state().rank_map.size()), mine = merged(all_axes());
  Digits fixed = whole.without(merged(other.all_axes()));
  Digits outside = whole.without(other.base_state().domain);
  Effect on_rows = mine.effect_on(fixed), on_devices = base_state().domain.effect_on(outside);
  if (on_rows == Effect::kChanges || on_devices == Effect::kChanges) return false;
  std::int64_t inside = outside(other.state_->offset);
  if (on_rows == Effect::kNone && on_devices == Effect::kNone)
    return outside(state_->offset) == inside;
  for (std::int64_t row = 0; row < rows(); ++row) {  // whether steps carry depends on the position
    std::int64_t start = state_->offset + state_->rows.offset(row);
    for (std::int64_t position = 0; position < size(); ++position) {
      std::int64_t index = start + mine.offset(position);
      if (outside(index) != inside || fixed(index) != fixed(start)) return false;
    }
  }
  return true;
}

}  // namespace meshard

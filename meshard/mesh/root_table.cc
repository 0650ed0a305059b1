#include "meshard/mesh/root_table.h"

namespace meshard {

RootTable::FlatAxis* RootTable::find_locked(std::string_view name) {
  for (FlatAxis& axis : flat_axes_)
    if (axis.name == name) return &axis;
  return nullptr;
}

std::optional<RootTable::FlatAxis> RootTable::find(std::string_view name) const {
  std::lock_guard lock(mutex_);
  for (const FlatAxis& axis : flat_axes_)
    if (axis.name == name) return axis;
  return std::nullopt;
}

std::optional<Digits> RootTable::add(const std::string& name, const Digits& digits) {
  std::lock_guard lock(mutex_);
  if (const FlatAxis* known = find_locked(name))
    return known->digits == digits ? std::nullopt : std::optional(known->digits);
  flat_axes_.push_back({name, digits, {}});
  return std::nullopt;
}

void RootTable::remember(const std::string& name, std::weak_ptr<const void> mesh) {
  std::lock_guard lock(mutex_);
  if (FlatAxis* known = find_locked(name)) known->mesh = std::move(mesh);
}

std::vector<RootTable::FlatAxis> RootTable::flat_axes() const {
  std::lock_guard lock(mutex_);
  return flat_axes_;
}

std::shared_ptr<const GroupFamily> RootTable::groups(const Digits& digits,
                                                     const RankMap& rank_map) {
  std::lock_guard lock(mutex_);
  for (const auto& family : groups_)
    if (family->digits == digits) return family;
  groups_.push_back(std::make_shared<const GroupFamily>(GroupFamily{digits, rank_map}));
  return groups_.back();
}

}  // namespace meshard

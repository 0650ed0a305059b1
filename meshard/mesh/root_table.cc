#include "meshard/mesh/root_table.h"

namespace meshard {

RootTable::FlatAxis* RootTable::find_locked(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

std::optional<RootTable::FlatAxis> RootTable::find(std::string_view name) const {
  std::lock_guard lock(mutex_);
  const FlatAxis* known = find_locked(name);
  return known ? std::optional(*known) : std::nullopt;
}

std::optional<Digits> RootTable::add(const std::string& name, const Digits& digits, AxisKind kind) {
  std::lock_guard lock(mutex_);
  if (const FlatAxis* known = find_locked(name))
    return known->digits == digits ? std::nullopt : std::optional(known->digits);
  FlatAxis& added = flat_axes_.emplace_back(FlatAxis{name, digits, kind, {}});
  by_name_.emplace(added.name, &added);
  return std::nullopt;
}

void RootTable::remember(const std::string& name, std::weak_ptr<const void> mesh) {
  std::lock_guard lock(mutex_);
  if (FlatAxis* known = find_locked(name)) known->mesh = std::move(mesh);
}

std::vector<RootTable::FlatAxis> RootTable::flat_axes() const {
  std::lock_guard lock(mutex_);
  return {flat_axes_.begin(), flat_axes_.end()};
}

RootTable::~RootTable() {
  const Groups* next = nullptr;
  for (const Groups* at = groups_.load(); at; at = next) {
    next = at->next;
    delete at;
  }
}

const RootTable::Groups* RootTable::find(const Groups* first, const Digits& digits) {
  while (first && first->family->digits != digits) first = first->next;
  return first;
}

std::shared_ptr<const GroupFamily> RootTable::groups(const Digits& digits,
                                                     const RankMap& rank_map) {
  if (const Groups* known = find(groups_.load(std::memory_order_acquire), digits))
    return known->family;
  std::lock_guard lock(mutex_);
  const Groups* newest = groups_.load(std::memory_order_relaxed);
  if (const Groups* known = find(newest, digits)) return known->family;  // added by another thread
  auto added = std::make_unique<const Groups>(
      Groups{std::make_shared<const GroupFamily>(GroupFamily{digits, rank_map}), newest});
  groups_.store(added.get(), std::memory_order_release);
  return added.release()->family;
}

}  // namespace meshard

// What all meshes of one root share: names of flattened axes, and groups.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/digits.h"

namespace meshard {

/// Append-only, locked: entries are found again for as long as the root lives. Not part of a mesh's
/// value. Holds no mesh alive.
class RootTable {
 public:
  struct FlatAxis {
    std::string name;
    Digits digits;
    std::weak_ptr<const void> mesh;  // the mesh of this axis alone, while it lives
  };

  /// The axis registered under the name, or none.
  std::optional<FlatAxis> find(std::string_view name) const;
  /// Registers a name, or sees that it is registered for the same digits.
  /// @error registered for other digits: those are returned.
  std::optional<Digits> add(const std::string& name, const Digits& digits);
  /// The mesh that find() gives from now on.
  void remember(const std::string& name, std::weak_ptr<const void> mesh);
  std::vector<FlatAxis> flat_axes() const;

  /// The groups along these digits: one object for each.
  std::shared_ptr<const GroupFamily> groups(const Digits& digits, const RankMap& rank_map);

 private:
  FlatAxis* find_locked(std::string_view name);

  mutable std::mutex mutex_;
  std::vector<FlatAxis> flat_axes_;
  std::vector<std::shared_ptr<const GroupFamily>> groups_;
};

}  // namespace meshard

// What all meshes of one root share: names of flattened axes, and groups.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "meshard/mesh/axis_kind.h"
#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/digits.h"

namespace meshard {

/// Append-only, locked for writing: entries are found again for as long as the root lives. Not part
/// of a mesh's value. Holds no mesh alive.
class RootTable {
 public:
  RootTable() = default;
  ~RootTable();
  RootTable(const RootTable&) = delete;
  RootTable& operator=(const RootTable&) = delete;

  struct FlatAxis {
    std::string name;
    Digits digits;
    AxisKind kind = AxisKind::kAuto;
    std::weak_ptr<const void> mesh;  // the mesh of this axis alone, while it lives
  };

  /// The axis registered under the name, or none.
  std::optional<FlatAxis> find(std::string_view name) const;
  /// Registers a name, or sees that it is registered for the same digits.
  /// @error registered for other digits: those are returned.
  std::optional<Digits> add(const std::string& name, const Digits& digits,
                            AxisKind kind = AxisKind::kAuto);
  /// The mesh that find() gives from now on.
  void remember(const std::string& name, std::weak_ptr<const void> mesh);
  std::vector<FlatAxis> flat_axes() const;

  /// The groups along these digits: one object for each. Takes no lock once they are known.
  std::shared_ptr<const GroupFamily> groups(const Digits& digits, const RankMap& rank_map);

 private:
  struct Groups {
    std::shared_ptr<const GroupFamily> family;
    const Groups* next;
  };
  FlatAxis* find_locked(std::string_view name);
  static const Groups* find(const Groups* first, const Digits& digits);

  mutable std::mutex mutex_;
  std::vector<FlatAxis> flat_axes_;
  std::atomic<const Groups*> groups_{nullptr};  // the newest first; links never change
};

}  // namespace meshard

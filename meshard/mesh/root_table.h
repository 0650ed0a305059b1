// State shared by all meshes of one root: names of flattened axes, and device groups.
#pragma once
#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "meshard/mesh/axis_ref.h"
#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/digits.h"

namespace meshard {

/// The flattened axes and device groups registered at a root. Append-only and locked for writing;
/// entries exist as long as the root. Not part of a mesh's value. Does not keep meshes alive.
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
  /// Registers a name for the given digits. Does nothing if it is registered for them already.
  /// @error the name is registered for other digits; these are returned.
  std::optional<Digits> add(const std::string& name, const Digits& digits,
                            AxisKind kind = AxisKind::kAuto);
  /// Sets the mesh that find() returns for this name.
  void remember(const std::string& name, std::weak_ptr<const void> mesh);
  std::vector<FlatAxis> flat_axes() const;

  /// The groups along these digits, created once. Takes no lock if they exist.
  std::shared_ptr<const GroupFamily> groups(const Digits& digits, const RankMap& rank_map);

 private:
  struct Groups {
    std::shared_ptr<const GroupFamily> family;
    const Groups* next;
  };
  FlatAxis* find_locked(std::string_view name) const;
  static const Groups* find(const Groups* first, const Digits& digits);

  mutable std::mutex mutex_;
  std::list<FlatAxis> flat_axes_;  // does not move its elements; no memory while empty
  std::unordered_map<std::string_view, FlatAxis*> by_name_;
  std::atomic<const Groups*> groups_{nullptr};  // the newest first; links never change
};

}  // namespace meshard

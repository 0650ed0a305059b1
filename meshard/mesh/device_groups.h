// Groups of devices along axes of a mesh.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "meshard/mesh/digits.h"
#include "meshard/mesh/rank_map.h"

namespace meshard {

/// Internal: what all groups along the same digits of one root share. Its address is the identity
/// of these groups.
struct GroupFamily {
  Digits digits;     // in the root's rank map
  RankMap rank_map;  // the root's
};

/// A view: the devices of one group, in mesh order. Made by Mesh::group and DeviceGroups.
class DeviceGroup {
 public:
  DeviceGroup(std::shared_ptr<const GroupFamily> family, std::int64_t offset,
              std::shared_ptr<const void> root)
      : family_(std::move(family)), offset_(offset), root_(std::move(root)) {}

  std::int64_t size() const { return family_->digits.size(); }
  /// The device of member k. @error k is not in 0..size()-1.
  std::int64_t operator[](std::int64_t k) const;
  /// All of them, as a view.
  RankMap ranks() const { return family_->rank_map.view(offset_, family_->digits); }
  std::vector<std::int64_t> to_vector() const;
  /// The place of a device in mesh order; none if it is not in the group.
  std::optional<std::int64_t> local_rank(std::int64_t device_id) const;
  /// Its place when the members are sorted by device id. Costs the size of the group if the root's
  /// ids are listed.
  std::optional<std::int64_t> sorted_local_rank(std::int64_t device_id) const;

  /// True if both are one group of one root, whichever mesh they were asked of.
  bool is_same_object(const DeviceGroup& other) const {
    return family_ == other.family_ && offset_ == other.offset_;
  }

 private:
  friend class Mesh;
  std::shared_ptr<const GroupFamily> family_;
  std::int64_t offset_;
  std::shared_ptr<const void> root_;  // the state of the root: Mesh::from_group finds it again
};

/// A view: all groups along some axes of a mesh, each made when it is asked for. Groups are
/// numbered by what the axes leave over, in the order of the base's axes (of the root's, where cuts
/// interlock so that no layout gives that order).
class DeviceGroups {
 public:
  DeviceGroups(std::shared_ptr<const GroupFamily> family, std::int64_t offset, Digits rows,
               Digits domain, std::shared_ptr<const void> root)
      : family_(std::move(family)),
        offset_(offset),
        rows_(std::move(rows)),
        domain_(std::move(domain)),
        root_(std::move(root)) {}

  /// Number of groups.
  std::int64_t count() const { return rows_.size(); }
  std::int64_t group_size() const { return family_->digits.size(); }
  /// @error g is not in 0..count()-1.
  DeviceGroup operator[](std::int64_t g) const;
  /// The number of the group a device is in; none if it is in none of them.
  std::optional<std::int64_t> find(std::int64_t device_id) const;
  /// The group a device is in.
  std::optional<DeviceGroup> of(std::int64_t device_id) const;
  /// Every group. Costs the number of devices.
  std::vector<std::vector<std::int64_t>> to_vectors() const;

  /// True if both are groups along the same digits of one root.
  bool is_same_object(const DeviceGroups& other) const {
    return family_ == other.family_ && offset_ == other.offset_ && domain_ == other.domain_;
  }

 private:
  std::shared_ptr<const GroupFamily> family_;
  std::int64_t offset_;
  Digits rows_;
  Digits domain_;  // of the mesh that was asked
  std::shared_ptr<const void> root_;
};

}  // namespace meshard

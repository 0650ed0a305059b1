// Groups of devices along axes of a mesh.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "meshard/mesh/axes_index.h"
#include "meshard/mesh/digits.h"
#include "meshard/mesh/mesh.h"
#include "meshard/mesh/rank_map.h"

namespace meshard {

// The groups of positions that collectives over given axes run in.

/// A value: the partition of a mesh into groups that differ only along `axes`. Each group is
/// computed when it is requested. Groups are numbered by their index along the remaining axes;
/// members are in ascending (mesh) order.
///
/// For `mesh<x=2, y=4>` and {"x"}: groups {0,4}, {1,5}, {2,6}, {3,7}.
class AxisGroups {
 public:
  /// @error unknown axis; a sub-axis that does not divide its axis; two that overlap.
  AxisGroups(const Mesh& mesh, const AxisList& axes);

  /// Number of groups.
  std::int64_t count() const { return base_.size(); }
  std::int64_t group_size() const { return member_.size(); }
  /// Position of member k of group g. @pre both in range
  std::int64_t member(std::int64_t g, std::int64_t k) const {
    return base_.offset(g) + member_.offset(k);
  }
  /// The positions of group g. @error g is not in 0..count()-1.
  std::vector<std::int64_t> group(std::int64_t g) const;
  /// The group of a position, and its index in that group. @pre the position is in the mesh
  std::int64_t group_of(std::int64_t position) const { return base_(position); }
  std::int64_t member_of(std::int64_t position) const { return member_(position); }
  /// All groups. Takes time proportional to the number of devices.
  std::vector<std::vector<std::int64_t>> groups() const;

  /// The same partition of the positions.
  friend bool operator==(const AxisGroups&, const AxisGroups&) = default;

 private:
  AxesIndex base_;    // over the remaining axes
  AxesIndex member_;  // over the axes, in mesh order
};

/// Internal: the state shared by all groups along the same digits of one root. Its address
/// identifies these groups.
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
  /// The device id of member k. @error k is not in 0..size()-1.
  std::int64_t operator[](std::int64_t k) const;
  /// The device ids of the group, as a view.
  RankMap ranks() const { return family_->rank_map.view(offset_, family_->digits); }
  std::vector<std::int64_t> to_vector() const;
  /// `[2,6]`, as RankMap prints.
  std::string to_string() const { return ranks().to_string(); }
  /// The index of a device in the group, in mesh order; none if it is not in the group.
  std::optional<std::int64_t> local_rank(std::int64_t device_id) const;
  /// The index of a device among the members sorted by device id; none if it is not in the group.
  /// Takes time proportional to the size of the group if the root stores a list of ids.
  std::optional<std::int64_t> sorted_local_rank(std::int64_t device_id) const;

  /// True if both are the same group of one root, even if they come from different meshes.
  bool is_same_object(const DeviceGroup& other) const {
    return family_ == other.family_ && offset_ == other.offset_;
  }

 private:
  friend class Mesh;
  std::shared_ptr<const GroupFamily> family_;
  std::int64_t offset_;
  std::shared_ptr<const void> root_;  // the root's state, for Mesh::from_group
};

/// A view: all groups along some axes of a mesh. Each group is made when it is accessed. Groups are
/// numbered by their index along the remaining axes, in the order of the base's axes. If cuts
/// interlock so that no layout has that order, the order follows the root's axes.
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
  /// The number of the group that contains a device; none if no group does.
  std::optional<std::int64_t> find(std::int64_t device_id) const;
  /// The group that contains a device; none if no group does.
  std::optional<DeviceGroup> of(std::int64_t device_id) const;
  /// The device ids of all groups. Takes time proportional to the number of devices.
  std::vector<std::vector<std::int64_t>> to_vectors() const;

  /// True if both are groups along the same digits of one root.
  bool is_same_object(const DeviceGroups& other) const {
    return family_ == other.family_ && offset_ == other.offset_ && domain_ == other.domain_;
  }

 private:
  std::shared_ptr<const GroupFamily> family_;
  std::int64_t offset_;
  Digits rows_;
  Digits domain_;  // of the mesh that these groups partition
  std::shared_ptr<const void> root_;
};

}  // namespace meshard

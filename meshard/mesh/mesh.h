// A mesh: named axes over a set of devices.
#pragma once
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/base/source_location.h"
#include "meshard/layout/layout.h"
#include "meshard/mesh/axis_ref.h"
#include "meshard/mesh/rank_map.h"

namespace meshard {

/// A value: the name and size of one axis of a mesh.
struct MeshAxis {
  std::string name;
  std::int64_t size = 1;
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

class DeviceIds;

/// A value: named axes over devices. Immutable; copies share one state and cost a reference count.
///
/// Positions 0..size()-1 run over the axes row-major: the last axis is the fastest. The rank map
/// says which device sits at each position; without one, position and device id are the same. A
/// program sees logical devices 0..n-1: the positions of the first mesh that it meets.
///
/// Nothing here costs memory or time in proportion to the number of devices, except a list of
/// device ids that is given.
///
/// ```
/// Mesh mesh({{"data", 2}, {"model", 4}});                    // devices 0..7
/// Mesh half({{"data", 2}, {"model", 2}}, {4, 5, 6, 7});      // any devices, in any order
/// mesh.device_id(5);           // 5
/// *half.coordinate(6);         // (1, 0)
/// mesh.group({"model"}, 5);    // positions 4, 5, 6, 7
/// ```
class Mesh {
 public:
  /// One device, id 0, no axes.
  Mesh();
  /// Row-major over devices 0..n-1.
  /// @error an axis name is empty, not an identifier ([A-Za-z_][A-Za-z0-9_]*) or repeated; an axis
  /// size is below 1; the number of devices does not fit 64 bits.
  explicit Mesh(std::vector<MeshAxis> axes, SourceLocation where = SourceLocation::current());
  /// Row-major over the given devices. One pass over the list.
  /// @error as above; the number of ids is not the product of the sizes; an id is negative or
  /// repeated.
  Mesh(std::vector<MeshAxis> axes, std::vector<std::int64_t> device_ids,
       SourceLocation where = SourceLocation::current());
  /// Row-major over a rank map.
  Mesh(std::vector<MeshAxis> axes, RankMap rank_map,
       SourceLocation where = SourceLocation::current());

  std::span<const MeshAxis> axes() const { return state_->axes; }
  /// Number of axes.
  std::size_t rank() const { return state_->axes.size(); }
  /// Index of the axis named so. @error not an axis of this mesh.
  std::size_t axis_index(std::string_view name) const;
  /// Index of the axis named so, or none.
  std::optional<std::size_t> find_axis(std::string_view name) const;
  /// Size of an axis or a sub-axis. @error unknown axis; the sub-axis does not divide its axis.
  std::int64_t axis_size(const AxisRef& axis) const;
  /// Number of devices.
  std::int64_t size() const { return state_->layout.size(); }
  /// The axis sizes.
  std::span<const std::int64_t> shape() const { return state_->layout.shape().leaves(); }
  /// From axis coordinates to positions; compact.
  const Layout& layout() const { return state_->layout; }
  const RankMap& rank_map() const { return state_->rank_map; }

  /// @error the position is not in 0..size()-1.
  void check_position(std::int64_t position) const {
    if (position < 0 || position >= size()) [[unlikely]]
      position_error(position);
  }
  /// The device at a position. @error the position is not in 0..size()-1.
  std::int64_t device_id(std::int64_t position) const;
  /// All device ids in mesh order, made as they are asked for.
  DeviceIds device_ids() const;
  /// Where a device sits; none if it is not in the mesh.
  std::optional<std::int64_t> position(std::int64_t device_id) const {
    return state_->rank_map.find(device_id);
  }
  /// The index of a device along every axis; none if it is not in the mesh.
  std::optional<IntVector> coordinate(std::int64_t device_id) const;
  /// The index of a position along every axis. @error the position is not in 0..size()-1.
  IntVector coordinate_at(std::int64_t position) const;
  /// True if both have the same devices, in whatever order.
  bool same_devices(const Mesh& other) const {
    return state_ == other.state_ || rank_map().same_devices(other.rank_map());
  }

  /// The positions that differ from `position` along `axes` only, ascending; itself among them.
  /// @error unknown or repeated axis; the position is not in 0..size()-1.
  std::vector<std::int64_t> group(const AxisList& axes, std::int64_t position) const;

  /// `mesh<data=2, model=4>`; with other devices than 0..n-1 `mesh<data=2, model=2;
  /// devices=[4,5,6,7]>`.
  std::string to_string() const;
  static Result<Mesh> parse(std::string_view text);
  static Mesh read(TextScanner& scanner);

  /// True if both are one object (copies of one another).
  bool is_same_object(const Mesh& other) const { return state_ == other.state_; }
  std::size_t hash() const { return state_->hash; }
  /// Same axes (names, sizes, order) and same device at every position.
  friend bool operator==(const Mesh& a, const Mesh& b) {
    return a.state_ == b.state_ || a.equal_state(b);
  }

 private:
  struct State {
    std::vector<MeshAxis> axes;
    Layout layout;
    RankMap rank_map = RankMap::identity(1);
    std::size_t hash = 0;
  };
  bool equal_state(const Mesh& other) const;
  [[noreturn]] void position_error(std::int64_t position) const;

  std::shared_ptr<const State> state_;
};

/// A view: the device ids of a mesh in mesh order. Keeps the mesh alive.
class DeviceIds {
 public:
  class Iterator {
   public:
    using value_type = std::int64_t;
    using difference_type = std::ptrdiff_t;
    using reference = std::int64_t;
    using pointer = void;
    using iterator_category = std::input_iterator_tag;
    Iterator() = default;
    Iterator(const RankMap* map, std::int64_t at) : map_(map), at_(at) {}
    std::int64_t operator*() const { return (*map_)[at_]; }
    Iterator& operator++() { return ++at_, *this; }
    Iterator operator++(int) { return Iterator(map_, at_++); }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const RankMap* map_ = nullptr;
    std::int64_t at_ = 0;
  };

  explicit DeviceIds(Mesh mesh) : mesh_(std::move(mesh)) {}
  std::int64_t size() const { return mesh_.size(); }
  /// @error the position is not in 0..size()-1.
  std::int64_t operator[](std::int64_t position) const { return mesh_.device_id(position); }
  Iterator begin() const { return {&mesh_.rank_map(), 0}; }
  Iterator end() const { return {&mesh_.rank_map(), size()}; }
  std::vector<std::int64_t> to_vector() const { return {begin(), end()}; }

 private:
  Mesh mesh_;
};

}  // namespace meshard

template <>
struct std::hash<meshard::Mesh> {
  std::size_t operator()(const meshard::Mesh& mesh) const noexcept { return mesh.hash(); }
};

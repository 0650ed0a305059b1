// A mesh: named axes over a set of devices.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/base/source_location.h"
#include "meshard/layout/layout.h"
#include "meshard/mesh/axis_names.h"
#include "meshard/mesh/axis_ref.h"
#include "meshard/mesh/digits.h"
#include "meshard/mesh/rank_map.h"

namespace meshard {

/// A value: one axis of a mesh.
struct MeshAxis {
  std::string name;
  std::int64_t size = 1;
  AxisKind kind = AxisKind::kAuto;
  /// `data=2`, `model=4 explicit`.
  std::string to_string() const;
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

/// True if the text is a valid axis name: letters, digits and _, not starting with a digit.
bool is_axis_name(std::string_view name);

/// Checks the axes of a mesh. @error an axis name is invalid or repeated; a size is below 1; the
/// product of the sizes does not fit 64 bits.
void check_mesh_axes(const std::vector<MeshAxis>& axes, SourceLocation where);

/// The order of the members of a group: mesh order, or by device id.
enum class RankOrder { kMesh, kSorted };
/// `mesh`, `sorted`.
std::string_view to_string(RankOrder order);

/// Whether axes may split a dimension whose size their product does not divide.
enum class Uneven { kAllow, kError };
/// `allow`, `error`.
std::string_view to_string(Uneven uneven);

/// What the text of a mesh includes.
enum class MeshText {
  kValue,     ///< what == compares
  kWithRoot,  ///< also its root, and the names that flatten registered there
};

class DeviceGroup;
class DeviceGroups;
class DeviceIds;
class RootTable;
class Submeshes;

/// A value: named axes over devices. Immutable; copies share one state and only change a reference
/// count.
///
/// A mesh made from sizes (and device ids) is a **root**. All other meshes are derived from a root
/// by slice, permute, flatten, unflatten, reshape, rename, squeeze, concatenate and submesh. They
/// share its rank map, and each of their axes is a layout into the rank map: flat, coalesced,
/// `():()` if the axis has size 1.
///
/// Positions 0..size()-1 enumerate the axes in row-major order: the last axis varies fastest. A
/// mesh that has dropped axes of its root (a slice) has several **rows**, one for each index along
/// the dropped axes; all other meshes have one. There is no current device: callers pass a device,
/// and the result is empty if the device is not in the mesh.
///
/// No operation costs memory or time in proportion to the number of devices, except for an explicit
/// list of device ids. Thread-safe.
///
/// ```
/// Mesh mesh({{"data", 2}, {"model", 4}});                    // devices 0..7
/// Mesh half({{"data", 2}, {"model", 2}}, {4, 5, 6, 7});      // any devices, in any order
/// mesh.device_id(5);             // 5
/// *half.coordinate(6);           // (1, 0)
/// mesh.group({"model"}, 5);      // devices 4, 5, 6, 7
/// mesh.slice({"model"}).rows();  // 2
/// mesh.submesh("model", 5);      // mesh<model=4; devices=[4,5,6,7]>
/// ```
class Mesh {
 public:
  /// One device, id 0, no axes.
  Mesh();
  /// A root mesh over devices 0..n-1, in row-major order.
  /// @error an axis name is empty, not an identifier ([A-Za-z_][A-Za-z0-9_]*) or repeated; an axis
  /// size is below 1; the number of devices does not fit 64 bits.
  explicit Mesh(std::vector<MeshAxis> axes, SourceLocation where = SourceLocation::current());
  /// A root mesh over the given devices, in row-major order. One pass over the list.
  /// @error an invalid axis name or size; the number of ids is not the product of the sizes; an id
  /// is negative or repeated.
  Mesh(std::vector<MeshAxis> axes, std::vector<std::int64_t> device_ids,
       SourceLocation where = SourceLocation::current());
  Mesh(std::vector<MeshAxis> axes, std::initializer_list<std::int64_t> device_ids,
       SourceLocation where = SourceLocation::current())
      : Mesh(std::move(axes), std::vector<std::int64_t>(device_ids), where) {}
  /// A root mesh over a rank map, in row-major order.
  Mesh(std::vector<MeshAxis> axes, RankMap rank_map,
       SourceLocation where = SourceLocation::current());
  /// A mesh from a layout into the rank map. Axis i has the name names[i] and the steps of mode i
  /// of `layout`. A layout that does not cover all positions gives a mesh of several rows, like a
  /// slice. The root has one axis, `ranks`, over the whole rank map.
  /// @post layout() is the same function, coalesced mode by mode
  /// @error the number of names is not the number of modes; a stride below 1; modes that overlap,
  /// or exceed the rank map; an invalid axis name.
  Mesh(const Layout& layout, RankMap rank_map, const std::vector<std::string>& names,
       SourceLocation where = SourceLocation::current());
  /// The same over devices 0..n-1, where n is the smallest number that the layout fits: the largest
  /// size times stride of a mode. PyTorch's `DeviceMesh(device_type, _layout=...)`.
  Mesh(const Layout& layout, const std::vector<std::string>& names,
       SourceLocation where = SourceLocation::current());

  /// The one-axis mesh of a group's devices.
  /// @post it has the root of the mesh that the group belongs to, and for any of its devices d,
  /// group({name}, d) is this same group (DeviceGroup::is_same_object)
  /// @error invalid axis name; the group combines explicit and other axes.
  static Mesh from_group(const DeviceGroup& group, std::string name,
                         SourceLocation where = SourceLocation::current());
  /// The mesh of all devices that several groups of one device span, with one axis per group.
  /// @post group() of the mesh returns each of the groups, as with from_group()
  /// @error also: no group; the number of names is not the number of groups; groups with different
  /// roots, without a common device, or along the same axes.
  static Mesh from_groups(const std::vector<DeviceGroup>& groups,
                          const std::vector<std::string>& names,
                          SourceLocation where = SourceLocation::current());

  std::span<const MeshAxis> axes() const { return state_->axes; }
  /// Number of axes.
  std::size_t rank() const { return axes().size(); }
  /// Index of the axis with this name. @error not an axis of this mesh.
  std::size_t axis_index(std::string_view name) const;
  /// Index of the axis with this name, or none.
  std::optional<std::size_t> find_axis(std::string_view name) const;
  /// Replaces an axis that is given by position with one given by name; other axes are unchanged.
  /// @error invalid argument, with the mesh, if it has fewer axes.
  AxisRef named(const AxisRef& axis, SourceLocation where = {}) const;
  AxisList named(const AxisList& axes, SourceLocation where = {}) const;
  /// Size of an axis or a sub-axis. @error unknown axis; the sub-axis does not divide its axis.
  std::int64_t axis_size(const AxisRef& axis) const;
  /// Number of positions: the product of the axis sizes.
  std::int64_t size() const { return state_->size; }
  /// The axis sizes.
  std::span<const std::int64_t> shape() const { return state_->shape; }
  /// The number of rows: 1 except for slices.
  std::int64_t rows() const { return state_->rows.size(); }
  /// The layout from axis coordinates to the root's rank map, with one mode per axis:
  /// `((2,2),8):((32,4),1)`.
  Layout layout() const;
  Layout axis_layout(std::size_t axis) const;
  /// The device at each position; of the first row if there are several. A view: all meshes with
  /// one root share one list.
  const RankMap& rank_map() const { return state_->rank_map; }
  /// The device at each position of a row. @error the row is not in 0..rows()-1.
  RankMap ranks(std::int64_t row) const;

  /// @error the position is not in 0..size()-1.
  void check_position(std::int64_t position) const {
    if (position < 0 || position >= size()) [[unlikely]]
      position_error(position);
  }
  /// The device at a position. @error the position is not in 0..size()-1; the mesh has several
  /// rows.
  std::int64_t device_id(std::int64_t position) const;
  /// The device at a coordinate, with one index per axis. @error the coordinate is not in the mesh;
  /// the mesh has several rows.
  std::int64_t device_id(IntView coordinate) const;
  /// The device at a coordinate, in the row of the device `seen_from`; none if that device is not
  /// in the mesh. @error the coordinate is not in the mesh.
  std::optional<std::int64_t> device_id(IntView coordinate, std::int64_t seen_from) const;
  /// All device ids, row by row, in mesh order; computed on demand.
  DeviceIds device_ids() const;
  /// The position of a device; none if it is not in the mesh.
  std::optional<std::int64_t> position(std::int64_t device_id) const;
  /// The index of a device along every axis; none if it is not in the mesh.
  std::optional<IntVector> coordinate(std::int64_t device_id) const;
  /// The row a device is in; none if it is not in the mesh.
  std::optional<std::int64_t> row(std::int64_t device_id) const;
  /// The index of a position along every axis. @error the position is not in 0..size()-1.
  IntVector coordinate_at(std::int64_t position) const;
  /// True if both have the same devices of one platform (device_type.h), in any order.
  bool same_devices(const Mesh& other) const;

  /// The groups of devices that differ only along `axes`, over all rows; the first axis is the most
  /// significant. Each list of axes of a root has one object, which is shared by meshes whose axes
  /// name the same devices differently. @error unknown or repeated axis.
  DeviceGroups groups(const AxisList& axes) const;
  /// The group a device is in; none if it is not in the mesh. @error unknown or repeated axis.
  std::optional<DeviceGroup> group(const AxisList& axes, std::int64_t device_id) const;
  /// The index of a device in its group; none if it is not in the mesh. In mesh order it is the
  /// index along the axes. @error unknown or repeated axis.
  std::optional<std::int64_t> local_rank(const AxisList& axes, std::int64_t device_id,
                                         RankOrder order = RankOrder::kMesh) const;

  // Operations. Each returns a mesh with the same root; errors include the mesh and the user's
  // source line.

  /// Selects some axes, in any order; the others become rows. Names are axes of this mesh or, if it
  /// equals its root, names that flatten has registered there. A unit axis may be selected
  /// repeatedly.
  /// @post selecting all axes in their order returns this same object
  /// @error unknown name; axes that overlap.
  Mesh slice(const AxisNames& names, SourceLocation where = SourceLocation::current()) const;
  /// slice of one name.
  Mesh operator[](std::string_view name) const { return slice(name, SourceLocation{}); }
  /// Reorders all axes. @error the names are not those of this mesh.
  Mesh permute(const AxisNames& names, SourceLocation where = SourceLocation::current()) const;
  /// Merges all axes into one, registered at the root under `name`; "" joins the names with "_".
  /// @post a name has one layout for the whole lifetime of the root; flattening the same axes to
  /// the same name again returns the same object while it is alive.
  /// @error the name is an axis of the root, or is registered for another layout; invalid axis
  /// name.
  Mesh flatten(std::string name = {}, SourceLocation where = SourceLocation::current()) const;
  /// Merges some axes into one, at the position of the first of them; the other axes remain.
  /// The name is registered at the root.
  Mesh flatten(const AxisNames& names, std::string name,
               SourceLocation where = SourceLocation::current()) const;
  /// Replaces an axis by several axes, major first.
  /// @error unknown axis; the product of the sizes differs from the axis size; a repeated name; an
  /// axis of several modes cannot be split there (the message says where it can).
  Mesh unflatten(std::string_view axis, std::vector<MeshAxis> parts,
                 SourceLocation where = SourceLocation::current()) const;
  /// Replaces the axes by others over the same positions. @error as unflatten.
  Mesh reshape(std::vector<MeshAxis> axes, SourceLocation where = SourceLocation::current()) const;
  /// Renames axes by {old, new} pairs. @error unknown old name; a repeated name.
  Mesh rename(const std::vector<std::pair<std::string, std::string>>& names,
              SourceLocation where = SourceLocation::current()) const;
  /// Removes all axes of size 1, or the named ones. @error a named axis has another size.
  Mesh squeeze() const;
  Mesh squeeze(const AxisNames& names, SourceLocation where = SourceLocation::current()) const;
  /// Adds an axis of size 1 before axis `place`. @error the name exists; place > rank().
  Mesh unsqueeze(std::string name, std::size_t place,
                 SourceLocation where = SourceLocation::current()) const;
  /// The mesh of the devices that differ from `device_id` only along these axes; none if it is not
  /// in the mesh. It has fewer devices, and the root and groups of this mesh.
  /// @error unknown axis.
  std::optional<Mesh> submesh(const AxisNames& names, std::int64_t device_id,
                              SourceLocation where = SourceLocation::current()) const;
  /// All submeshes along these axes, each created on demand; for a slice, those of all its rows.
  Submeshes submeshes(const AxisNames& names,
                      SourceLocation where = SourceLocation::current()) const;

  /// The root that this mesh is derived from; itself for a root.
  Mesh root() const;
  bool is_root() const { return !state_->root; }
  /// The root, or the submesh that this mesh is a view of; its axes cover its devices compactly.
  Mesh base() const;
  bool is_base() const { return !state_->base; }
  /// The same axes and devices as a new root. @error the mesh has several rows.
  Mesh as_root(SourceLocation where = SourceLocation::current()) const;
  /// as_root with another kind for some axes. @error unknown axis; the mesh has several rows.
  Mesh with_axis_kind(const AxisNames& names, AxisKind kind,
                      SourceLocation where = SourceLocation::current()) const;
  /// True if an axis is explicit.
  bool has_explicit_axes() const { return state_->has_explicit; }
  /// The platform of the devices: `cpu`, `cuda`, `tpu`; empty: the default platform of the process.
  /// All meshes with one root share it. Each platform has its own device ids.
  const std::string& device_type() const { return root_state().properties.device_type; }
  /// as_root for devices of this platform; empty: the default platform. PyTorch's `device_type`.
  /// @error the name has characters other than letters, digits and _; the mesh has several rows.
  Mesh with_device_type(std::string device_type,
                        SourceLocation where = SourceLocation::current()) const;
  /// How mark_sharding treats a dimension that the axes do not divide evenly; kAllow unless changed
  /// by with_uneven. All meshes with one root share it.
  Uneven uneven() const { return root_state().properties.uneven; }
  /// as_root with another rule for dimensions that the axes do not divide evenly.
  /// @error the mesh has several rows.
  Mesh with_uneven(Uneven uneven, SourceLocation where = SourceLocation::current()) const;
  /// The axes and sub-axes of base() that some axes of this mesh correspond to.
  /// @error unknown axis; they do not correspond to whole axes or sub-axes of base().
  Result<AxisList> axes_in_base(const AxisList& axes) const;
  /// Names that flatten has registered at the root, in order, with their layouts.
  std::vector<std::pair<std::string, Layout>> flattened() const;
  bool same_root(const Mesh& other) const;
  /// True if each row of this mesh is within a row of `other`, and both have the same root. Costs a
  /// few operations; if the cuts of the two interlock (3 x 6 and 2 x 9), a pass over the devices.
  bool is_submesh_of(const Mesh& other) const;

  /// The text of the mesh: `mesh<data=2, model=4>`; with an explicit axis `mesh<data=2, model=4
  /// explicit>`; with devices other than 0..n-1 `mesh<data=2, model=2; devices=[4,5,6,7]>`; for a
  /// slice or another order, the steps over the base: `mesh<model=4:1 of mesh<data=2, model=4>>`.
  /// The settings of with_device_type and with_uneven come last: `mesh<data=2; device_type=cuda;
  /// uneven=error>`.
  ///
  /// MeshText::kWithRoot also includes the device and root from which a submesh was taken, and the
  /// flattened names of the root: `mesh<model=4:1 from 4 of mesh<data=2, model=4; flattened
  /// all=8:1>>`.
  std::string to_string(MeshText form = MeshText::kValue) const;
  /// Parses the output of to_string(). For MeshText::kWithRoot, the root equals the original one
  /// and has the same flattened names.
  static Result<Mesh> parse(std::string_view text);
  static Mesh read(TextScanner& scanner);

  /// True if both are the same object (copies of one another).
  bool is_same_object(const Mesh& other) const { return state_ == other.state_; }
  std::size_t hash() const { return state_->hash; }
  /// Compares by value. Equal meshes have the same names, device types, rule for uneven sizes, and
  /// layouts into equal rank maps. A submesh counts as a root. Whether the two have the same root
  /// does not matter.
  friend bool operator==(const Mesh& a, const Mesh& b) {
    return a.state_ == b.state_ || a.equal_state(b);
  }

  /// Internal. The digits of some axes or sub-axes in the root's rank map, major first.
  /// @error unknown or repeated axis; a sub-axis that does not divide its axis.
  Digits digits(const AxisList& axes) const;

 private:
  friend class DeviceIds;
  friend class Submeshes;
  friend Mesh concatenate(std::span<const Mesh> meshes, SourceLocation where);

  struct Properties {  // shared by all meshes of a root
    std::string device_type;
    Uneven uneven = Uneven::kAllow;
    friend bool operator==(const Properties&, const Properties&) = default;
  };
  struct State {
    std::vector<MeshAxis> axes;
    IntVector shape;
    std::int64_t size = 1;
    // The modes of all axes, in the root's rank map; `ends` has the end of each axis's modes.
    InlineVector<Digit, 4> modes;
    InlineVector<std::uint16_t, 6> ends;
    std::int64_t offset = 0;  // of position 0 in the root's rank map
    Digits rows;              // in the root's rank map, from the offset on
    RankMap rank_map = RankMap::identity(1);
    std::shared_ptr<const State> root, base;  // null: this state
    Digits domain;                            // of a base: all positions, in axis order
    std::shared_ptr<RootTable> table;         // of a root
    Properties properties;                    // of a root
    bool has_explicit = false;
    std::size_t hash = 0;
  };
  explicit Mesh(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  // One axis of a mesh under construction.
  struct Axis {
    std::string name;
    Digits digits;
    AxisKind kind = AxisKind::kAuto;
  };
  using Axes = std::vector<Axis>;
  const State& root_state() const { return state_->root ? *state_->root : *state_; }
  const State& base_state() const { return state_->base ? *state_->base : *state_; }
  std::span<const Digit> modes_of(std::size_t axis) const;
  Digits axis_digits(std::size_t axis) const;
  Axes all_axes() const;
  Axes axes_named(const AxisNames& names, SourceLocation where) const;
  static Digits merged(const Axes& axes);
  AxisKind merged_kind(const Axes& axes, SourceLocation where) const;
  static Result<Digits> cut(const Digits& axis, std::int64_t size, std::int64_t stride);
  static std::shared_ptr<State> state_of(const Axes& axes, const Digits& all, SourceLocation where);
  static Mesh finished(std::shared_ptr<State> state);
  static std::shared_ptr<State> root_state_of(const std::vector<MeshAxis>& axes, RankMap rank_map,
                                              SourceLocation where);
  Mesh with_properties(Properties properties, SourceLocation where) const;
  AxisKind kind_along(const Digits& digits, SourceLocation where) const;
  std::shared_ptr<const State> shared_root() const { return state_->root ? state_->root : state_; }
  std::string text_over(std::string_view link, const Mesh& from, const std::vector<Digits>& steps,
                        MeshText form) const;
  std::string root_suffix(MeshText form) const;
  static std::int64_t read_steps(const IntTuple& shape, Axis& axis, TextScanner& scanner);
  static Mesh read_derived(const std::vector<MeshAxis>& sizes, const Axes& axes,
                           TextScanner& scanner);
  Mesh read_submesh(const Axes& axes, std::int64_t from, TextScanner& scanner) const;
  static Mesh read_root(std::vector<MeshAxis> axes, TextScanner& scanner);
  void read_flattened(TextScanner& scanner) const;
  Mesh derive(const Axes& axes, SourceLocation where) const;
  Axes submesh_axes(const AxisNames& names, SourceLocation where) const;
  Mesh submesh_at(const Axes& axes, std::int64_t index, SourceLocation where) const;
  Axis registered(Axis axis, SourceLocation where) const;
  Axes parts_of(const Axis& axis, const std::vector<MeshAxis>& parts, SourceLocation where) const;
  std::optional<std::int64_t> index_of(std::int64_t device_id) const;
  std::optional<Digits> axis_in_base(std::size_t axis) const;
  bool equal_state(const Mesh& other) const;
  bool same_steps_in_root(const Mesh& other, std::size_t axis) const;
  [[noreturn]] void position_error(std::int64_t position) const;
  std::int64_t position_at(IntView coordinate) const;

  std::shared_ptr<const State> state_;
};

/// A view: the device ids of a mesh, row by row, in mesh order. Keeps the mesh alive.
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

  explicit DeviceIds(const Mesh& mesh);
  std::int64_t size() const { return map_.size(); }
  /// @error i is not in 0..size()-1.
  std::int64_t operator[](std::int64_t i) const;
  Iterator begin() const { return {&map_, 0}; }
  Iterator end() const { return {&map_, size()}; }
  std::vector<std::int64_t> to_vector() const { return {begin(), end()}; }
  const RankMap& rank_map() const { return map_; }

 private:
  RankMap map_;
};

}  // namespace meshard

template <>
struct std::hash<meshard::Mesh> {
  std::size_t operator()(const meshard::Mesh& mesh) const noexcept { return mesh.hash(); }
};

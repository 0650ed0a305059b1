// A mesh: named axes over a set of devices.
#pragma once
#include <cstdint>
#include <functional>
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
#include "meshard/mesh/axis_kind.h"
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
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

/// True for what can name an axis: letters, digits and _, not beginning with a digit.
bool is_axis_name(std::string_view name);

/// @error an axis name is no name or occurs twice; a size is below 1; the sizes multiplied do not
/// fit 64 bits.
void check_mesh_axes(const std::vector<MeshAxis>& axes, SourceLocation where);

/// The order in which the members of a group are counted: as the mesh lists them, or by device id.
enum class RankOrder { kMesh, kSorted };

/// Whether a dimension may be split by axes whose product does not divide its size.
enum class Uneven { kAllow, kError };

/// What the text of a mesh says.
enum class MeshText {
  kValue,     ///< what == compares
  kWithRoot,  ///< also which mesh it was taken from, and the names that flatten registered there
};

class DeviceGroup;
class DeviceGroups;
class DeviceIds;
class RootTable;
class Submeshes;

/// A value: named axes over devices. Immutable; copies share one state and cost a reference count.
///
/// A mesh made from sizes (and device ids) is a **root**. All others come from one by slice,
/// permute, flatten, unflatten, reshape, rename, squeeze, concatenate and submesh; they share its
/// rank map, and an axis of theirs is a layout into it: flat, coalesced, `():()` if the axis has
/// size 1.
///
/// Positions 0..size()-1 run over the axes row-major: the last axis is the fastest. A mesh that has
/// dropped axes of its root (a slice) has several **rows**, one for each index along what was
/// dropped; all other meshes have one. There is no current device: whoever asks says for which
/// device, and a device outside gets an empty answer.
///
/// Nothing here costs memory or time in proportion to the number of devices, except a list of
/// device ids that is given. Meshes may be used from several threads.
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
  /// Row-major over devices 0..n-1.
  /// @error an axis name is empty, not an identifier ([A-Za-z_][A-Za-z0-9_]*) or repeated; an axis
  /// size is below 1; the number of devices does not fit 64 bits.
  explicit Mesh(std::vector<MeshAxis> axes, SourceLocation where = SourceLocation::current());
  /// Row-major over the given devices. One pass over the list.
  /// @error as above; the number of ids is not the product of the sizes; an id is negative or
  /// repeated.
  Mesh(std::vector<MeshAxis> axes, std::vector<std::int64_t> device_ids,
       SourceLocation where = SourceLocation::current());
  Mesh(std::vector<MeshAxis> axes, std::initializer_list<std::int64_t> device_ids,
       SourceLocation where = SourceLocation::current())
      : Mesh(std::move(axes), std::vector<std::int64_t>(device_ids), where) {}
  /// Row-major over a rank map.
  Mesh(std::vector<MeshAxis> axes, RankMap rank_map,
       SourceLocation where = SourceLocation::current());
  /// Axis i is named names[i] and steps through the rank map as mode i of `layout` does. A layout
  /// that leaves positions over gives a mesh of several rows, as a slice is. The root has one axis,
  /// `ranks`, over the whole rank map.
  /// @post layout() is the same function, coalesced mode by mode
  /// @error not one name for each mode; a stride below 1; modes that overlap, or that do not lie
  /// within the rank map; an axis name as above.
  Mesh(const Layout& layout, RankMap rank_map, const std::vector<std::string>& names,
       SourceLocation where = SourceLocation::current());

  /// The mesh of the devices of a group, along one axis.
  /// @post its root is that of the mesh the group was asked of, and group({name}, d) of any of its
  /// devices d is this very group (DeviceGroup::is_same_object)
  /// @error the name is no axis name; the group runs along explicit and other axes at once.
  static Mesh from_group(const DeviceGroup& group, std::string name,
                         SourceLocation where = SourceLocation::current());
  /// The mesh of all devices that the groups of one device reach, with an axis for each group.
  /// @post as above, for the groups that are given
  /// @error also: no group; not one name for each; groups of different roots, that have no device
  /// in common, or that run along the same axes.
  static Mesh from_groups(const std::vector<DeviceGroup>& groups,
                          const std::vector<std::string>& names,
                          SourceLocation where = SourceLocation::current());

  std::span<const MeshAxis> axes() const { return state_->axes; }
  /// Number of axes.
  std::size_t rank() const { return axes().size(); }
  /// Index of the axis named so. @error not an axis of this mesh.
  std::size_t axis_index(std::string_view name) const;
  /// Index of the axis named so, or none.
  std::optional<std::size_t> find_axis(std::string_view name) const;
  /// An axis given by its position under its name; other axes as they are.
  /// @error invalid argument naming the mesh, if it has fewer axes.
  AxisRef named(const AxisRef& axis, SourceLocation where = {}) const;
  AxisList named(const AxisList& axes, SourceLocation where = {}) const;
  /// Size of an axis or a sub-axis. @error unknown axis; the sub-axis does not divide its axis.
  std::int64_t axis_size(const AxisRef& axis) const;
  /// Number of positions: the product of the axis sizes.
  std::int64_t size() const { return state_->size; }
  /// The axis sizes.
  std::span<const std::int64_t> shape() const { return state_->shape; }
  /// How many times the positions are repeated over other devices; 1 except for slices.
  std::int64_t rows() const { return state_->rows.size(); }
  /// From axis coordinates to the root's rank map, one mode an axis: `((2,2),8):((32,4),1)`.
  Layout layout() const;
  Layout axis_layout(std::size_t axis) const;
  /// The device at each position; of the first row if there are several. A view: all meshes of one
  /// root look at one list.
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
  /// The device at a coordinate, one index an axis. @error the coordinate is not in the mesh; the
  /// mesh has several rows.
  std::int64_t device_id(IntView coordinate) const;
  /// The device at a coordinate, in the row of the device `seen_from`; none if that is not in the
  /// mesh. @error the coordinate is not in the mesh.
  std::optional<std::int64_t> device_id(IntView coordinate, std::int64_t seen_from) const;
  /// All device ids, row by row, in mesh order, made as they are asked for.
  DeviceIds device_ids() const;
  /// Where a device sits; none if it is not in the mesh.
  std::optional<std::int64_t> position(std::int64_t device_id) const;
  /// The index of a device along every axis; none if it is not in the mesh.
  std::optional<IntVector> coordinate(std::int64_t device_id) const;
  /// The row a device is in; none if it is not in the mesh.
  std::optional<std::int64_t> row(std::int64_t device_id) const;
  /// The index of a position along every axis. @error the position is not in 0..size()-1.
  IntVector coordinate_at(std::int64_t position) const;
  /// True if both have the same devices of one platform (device_type.h), in whatever order.
  bool same_devices(const Mesh& other) const;

  /// The groups of devices that differ along `axes` only (the first is the most significant), over
  /// all rows. One object for each list of axes of a root: meshes that name the same devices by
  /// other axes share it. @error unknown or repeated axis.
  DeviceGroups groups(const AxisList& axes) const;
  /// The group a device is in; none if it is not in the mesh. @error unknown or repeated axis.
  std::optional<DeviceGroup> group(const AxisList& axes, std::int64_t device_id) const;
  /// The place of a device in its group; none if it is not in the mesh. In mesh order it is the
  /// index along the axes. @error unknown or repeated axis.
  std::optional<std::int64_t> local_rank(const AxisList& axes, std::int64_t device_id,
                                         RankOrder order = RankOrder::kMesh) const;

  // Operations. Each gives a mesh over the same root; errors show the mesh and the user's line.

  /// Some axes, in any order; the others become rows. Names are axes of this mesh or, if it equals
  /// its root, names that flatten has registered there. A unit axis may be named again.
  /// @post all names of this mesh in their order give this very object
  /// @error unknown name; axes that overlap.
  Mesh slice(const AxisNames& names, SourceLocation where = SourceLocation::current()) const;
  /// slice of one name.
  Mesh operator[](std::string_view name) const { return slice(name, SourceLocation{}); }
  /// All axes in another order. @error the names are not those of this mesh.
  Mesh permute(const AxisNames& names, SourceLocation where = SourceLocation::current()) const;
  /// All axes as one, registered at the root under `name`; "" joins the names by "_".
  /// @post one name has one layout for the whole life of the root; flattening the same axis to the
  /// same name again gives the same object while it lives.
  /// @error the name is an axis of the root, or registered for another layout; no name.
  Mesh flatten(std::string name = {}, SourceLocation where = SourceLocation::current()) const;
  /// Some axes as one, at the place of the first of them; the other axes stay. Registered as above.
  Mesh flatten(const AxisNames& names, std::string name,
               SourceLocation where = SourceLocation::current()) const;
  /// Replaces an axis by several, major first.
  /// @error unknown axis; the sizes multiply to another one; a name occurs twice; an axis of
  /// several modes cannot be cut there (the message says where it can).
  Mesh unflatten(std::string_view axis, std::vector<MeshAxis> parts,
                 SourceLocation where = SourceLocation::current()) const;
  /// Other axes over the same positions. @error as unflatten.
  Mesh reshape(std::vector<MeshAxis> axes, SourceLocation where = SourceLocation::current()) const;
  /// {old, new} names. @error unknown old name; a name would occur twice.
  Mesh rename(const std::vector<std::pair<std::string, std::string>>& names,
              SourceLocation where = SourceLocation::current()) const;
  /// Without the axes of size 1; or without these. @error one has another size.
  Mesh squeeze() const;
  Mesh squeeze(const AxisNames& names, SourceLocation where = SourceLocation::current()) const;
  /// With one more axis, of size 1, before axis `place`. @error the name occurs; place > rank().
  Mesh unsqueeze(std::string name, std::size_t place,
                 SourceLocation where = SourceLocation::current()) const;
  /// The mesh of the devices that differ from `device_id` along these axes only; none if it is not
  /// in the mesh. Its devices are a smaller set, its root and its groups are those of this mesh.
  /// @error unknown axis.
  std::optional<Mesh> submesh(const AxisNames& names, std::int64_t device_id,
                              SourceLocation where = SourceLocation::current()) const;
  /// All of these, each made when asked for; of a slice, those of all its rows.
  Submeshes submeshes(const AxisNames& names,
                      SourceLocation where = SourceLocation::current()) const;

  /// The mesh all this derives from; itself for a root.
  Mesh root() const;
  bool is_root() const { return !state_->root; }
  /// The root, or the submesh that this mesh is a view of: its axes are compact over its devices.
  Mesh base() const;
  bool is_base() const { return !state_->base; }
  /// The same axes and devices as a root of its own. @error the mesh has several rows.
  Mesh as_root(SourceLocation where = SourceLocation::current()) const;
  /// as_root with another kind for some axes. @error unknown axis; the mesh has several rows.
  Mesh with_axis_kind(const AxisNames& names, AxisKind kind,
                      SourceLocation where = SourceLocation::current()) const;
  /// True if an axis is explicit.
  bool has_explicit_axes() const { return state_->has_explicit; }
  /// The platform of the devices, `cpu`, `cuda`, `tpu`; empty: the default one of the process. All
  /// meshes of a root share it. Device ids count per platform.
  const std::string& device_type() const { return root_state().properties.device_type; }
  /// as_root for devices of this platform; empty: the default. PyTorch's `device_type`.
  /// @error not letters, digits and _; the mesh has several rows.
  Mesh with_device_type(std::string device_type,
                        SourceLocation where = SourceLocation::current()) const;
  /// What mark_sharding does with a dimension that the axes do not divide; kAllow unless
  /// with_uneven said otherwise. All meshes of a root share it.
  Uneven uneven() const { return root_state().properties.uneven; }
  /// as_root, and whether dimensions that do not divide are an error.
  /// @error the mesh has several rows.
  Mesh with_uneven(Uneven uneven, SourceLocation where = SourceLocation::current()) const;
  /// The axes (whole or in part) of base() that some axes of this mesh step along.
  /// @error unknown axis; they do not fall on whole axes or sub-axes of base().
  Result<AxisList> axes_in_base(const AxisList& axes) const;
  /// Names that flatten has registered at the root, in order, with their layouts.
  std::vector<std::pair<std::string, Layout>> flattened() const;
  bool same_root(const Mesh& other) const;
  /// True if both have one root and each row of this lies within a row of `other`. A few
  /// operations; where the cuts of the two interlock (3 x 6 and 2 x 9), a look at each device.
  bool is_submesh_of(const Mesh& other) const;

  /// `mesh<data=2, model=4>`; with an explicit axis `mesh<data=2, model=4 explicit>`; with other
  /// devices than 0..n-1 `mesh<data=2, model=2; devices=[4,5,6,7]>`; a slice or another order by
  /// its steps over the base: `mesh<model=4:1 of mesh<data=2, model=4>>`. What with_device_type and
  /// with_uneven said comes last: `mesh<data=2; device_type=cuda; uneven=error>`.
  ///
  /// MeshText::kWithRoot also writes from which device of which root a submesh was taken, and the
  /// flattened names of the root: `mesh<model=4:1 from 4 of mesh<data=2, model=4; flattened
  /// all=8:1>>`.
  std::string to_string(MeshText form = MeshText::kValue) const;
  /// The mesh of such a text. Of MeshText::kWithRoot, the root is equal to the one written, and has
  /// the same flattened names.
  static Result<Mesh> parse(std::string_view text);
  static Mesh read(TextScanner& scanner);

  /// True if both are one object (copies of one another).
  bool is_same_object(const Mesh& other) const { return state_ == other.state_; }
  std::size_t hash() const { return state_->hash; }
  /// Same names, device types and rule for uneven sizes, and the same layouts into equal rank maps;
  /// a submesh counts as a root. Whether the two have the same root does not matter.
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

  struct Properties {  // of all meshes of a root
    std::string device_type;
    Uneven uneven = Uneven::kAllow;
    friend bool operator==(const Properties&, const Properties&) = default;
  };
  struct State {
    std::vector<MeshAxis> axes;
    IntVector shape;
    std::int64_t size = 1;
    // Of all axes, in the root's rank map; `ends` says where the modes of each axis end.
    InlineVector<Digit, 4> modes;
    InlineVector<std::uint16_t, 6> ends;
    std::int64_t offset = 0;  // of position 0 in the root's rank map
    Digits rows;              // in the root's rank map, from the offset on
    RankMap rank_map = RankMap::identity(1);
    std::shared_ptr<const State> root, base;  // null: this one
    Digits domain;                            // of a base: all it covers, in the axes' order
    std::shared_ptr<RootTable> table;         // of a root
    Properties properties;                    // of a root
    bool has_explicit = false;
    std::size_t hash = 0;
  };
  explicit Mesh(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  // One axis of a mesh to be.
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

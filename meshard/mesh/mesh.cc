#include "meshard/mesh/mesh.h"

#include <cctype>

#include "meshard/base/fingerprint.h"
#include "meshard/layout/algebra.h"
#include "meshard/layout/modes.h"
#include "meshard/mesh/axes_index.h"
#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/device_type.h"
#include "meshard/mesh/root_table.h"

namespace meshard {

bool is_axis_name(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  for (char c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  return true;
}

void check_mesh_axes(const std::vector<MeshAxis>& axes, SourceLocation where) {
  std::int64_t size = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const MeshAxis& axis = axes[i];
    if (axis.name.empty()) throw_invalid(where, "[mesh] the name of axis ", i, " is empty");
    if (!is_axis_name(axis.name))
      throw_invalid(where, "[mesh] the name of axis ", i, ", \"", axis.name,
                    "\", is not an identifier (letters, digits and _, not beginning with a digit)");
    if (axis.size < 1)
      throw_invalid(where, "[mesh] axis \"", axis.name, "\" has size ", axis.size,
                    "; it must be at least 1");
    for (std::size_t j = 0; j < i; ++j)
      if (axes[j].name == axis.name)
        throw_invalid(where, "[mesh] axis name \"", axis.name, "\" is used twice: by axes ", j,
                      " and ", i);
    if (__builtin_mul_overflow(size, axis.size, &size))
      throw_invalid(where, "[mesh] the number of devices does not fit 64 bits at axis \"",
                    axis.name, "\" = ", axis.size);
  }
}

namespace {

std::int64_t device_count(const std::vector<MeshAxis>& axes, SourceLocation where) {
  check_mesh_axes(axes, where);
  std::int64_t size = 1;
  for (const MeshAxis& axis : axes) size *= axis.size;
  return size;
}

RankMap listed_at(std::vector<std::int64_t> ids, std::int64_t wanted, SourceLocation where) {
  if (static_cast<std::int64_t>(ids.size()) != wanted)
    throw_invalid(where, "[mesh] ", ids.size(), " device ids for ", wanted,
                  " positions (the product of the axis sizes)");
  try {
    return RankMap::listed(std::move(ids));
  } catch (const Error& error) {
    throw error.at(where);
  }
}

}  // namespace

Mesh::Mesh() {
  static const Mesh alone(std::vector<MeshAxis>{}, SourceLocation{});
  state_ = alone.state_;
}

Mesh::Mesh(std::vector<MeshAxis> axes, SourceLocation where)
    : Mesh(axes, RankMap::identity(device_count(axes, where)), where) {}

Mesh::Mesh(std::vector<MeshAxis> axes, std::vector<std::int64_t> device_ids, SourceLocation where)
    : Mesh(axes, listed_at(std::move(device_ids), device_count(axes, where), where), where) {}

Mesh::Mesh(std::vector<MeshAxis> axes, RankMap rank_map, SourceLocation where)
    : Mesh(finished(root_state_of(axes, std::move(rank_map), where))) {}

// Leaves the hash unset, because the properties may still change.
std::shared_ptr<Mesh::State> Mesh::root_state_of(const std::vector<MeshAxis>& axes,
                                                 RankMap rank_map, SourceLocation where) {
  std::int64_t size = device_count(axes, where);
  if (size != rank_map.size())
    throw_invalid(where, "[mesh] ", rank_map.size(), " device ids for ", size,
                  " positions (the product of the axis sizes)");
  Axes own;
  std::int64_t stride = size;
  for (const MeshAxis& axis : axes) {
    stride /= axis.size;
    own.push_back({axis.name, {}, axis.kind});
    own.back().digits.push_back({axis.size, stride});
  }
  Digits whole = Digits::whole(size);
  std::shared_ptr<State> state = state_of(own, whole, where);
  state->rank_map = std::move(rank_map);
  state->domain = whole;
  state->table = std::make_shared<RootTable>();
  return state;
}

// Makes the mesh, with the hash of the fields that equal_state compares.
Mesh Mesh::finished(std::shared_ptr<State> state) {
  State& made = *state;
  Mesh mesh(std::move(state));
  made.hash = mesh.base_state().rank_map.hash();
  const Properties& properties = mesh.root_state().properties;
  if (properties != Properties())
    made.hash = hash_combine(hash_combine(made.hash, static_cast<std::size_t>(properties.uneven)),
                             std::hash<std::string>()(properties.device_type));
  for (std::size_t i = 0; i < mesh.rank(); ++i) {
    made.hash = hash_combine(made.hash, std::hash<std::string>()(mesh.axes()[i].name));
    made.hash = hash_combine(made.hash, static_cast<std::size_t>(mesh.axes()[i].size));
    made.has_explicit = made.has_explicit || mesh.axes()[i].kind == AxisKind::kExplicit;
    made.hash = hash_combine(made.hash, static_cast<std::size_t>(mesh.axes()[i].kind));
    if (std::optional<Digits> digits = mesh.axis_in_base(i))
      made.hash = hash_combine(made.hash, digits->hash());
  }
  return mesh;
}

// Sets the axes, shape and modes; the caller sets the fields that depend on the root.
std::shared_ptr<Mesh::State> Mesh::state_of(const Axes& axes, const Digits& all,
                                            SourceLocation where) {
  auto state = std::make_shared<State>();
  state->axes.reserve(axes.size());
  for (const Axis& axis : axes) {
    std::int64_t size = axis.digits.size();
    for (const MeshAxis& other : state->axes)
      if (other.name == axis.name && (size > 1 || other.size > 1))
        throw_invalid(where, "[mesh] two axes would be named \"", axis.name, "\"");
    state->axes.push_back({axis.name, size, axis.kind});
    state->shape.push_back(size);
    for (const Digit& mode : axis.digits.modes()) state->modes.push_back(mode);
    state->ends.push_back(static_cast<std::uint16_t>(state->modes.size()));
  }
  state->size = all.size();
  return state;
}

// Makes a mesh of these axes over the devices of base().
Mesh Mesh::derive(const Axes& axes, SourceLocation where) const {
  const State& base = base_state();
  Digits all = merged(axes);
  if (!all.is_orthogonal()) {
    std::string shown;
    for (const Axis& axis : axes)
      append(shown, cat(shown.empty() ? "" : ", ", axis.name, '=', axis.digits.layout()));
    throw_invalid(where, "[mesh] axes overlap: ", shown, " over ", root());
  }
  std::shared_ptr<State> state = state_of(axes, all, where);
  state->offset = base.offset;
  state->rows = base.domain.without(all);
  state->rank_map = root_state().rank_map.view(base.offset, all);
  state->root = state_->root ? state_->root : state_;
  state->base = state_->base ? state_->base : state_;
  return finished(std::move(state));
}

std::optional<std::size_t> Mesh::find_axis(std::string_view name) const {
  for (std::size_t i = 0; i < axes().size(); ++i)
    if (axes()[i].name == name) return i;
  return std::nullopt;
}

std::size_t Mesh::axis_index(std::string_view name) const {
  if (std::optional<std::size_t> index = find_axis(name)) return *index;
  std::string known;
  for (const MeshAxis& axis : axes()) append(known, cat(known.empty() ? "" : ", ", axis.name));
  throw Error(ErrorCode::kNotFound, cat("[mesh] no axis \"", name, "\"; the mesh has ",
                                        known.empty() ? "no axes" : cat("the axes ", known)));
}

AxisRef Mesh::named(const AxisRef& axis, SourceLocation where) const {
  if (!axis.is_position()) return axis;
  if (axis.position >= static_cast<std::int64_t>(rank()))
    throw_invalid(where, "[mesh] there is no axis at position ", axis.position, ": ", *this,
                  " has ", rank(), rank() == 1 ? " axis" : " axes", ", counted from 0");
  return AxisRef(axes()[static_cast<std::size_t>(axis.position)].name);
}

AxisList Mesh::named(const AxisList& list, SourceLocation where) const {
  AxisList out;
  for (const AxisRef& axis : list) out.push_back(named(axis, where));
  return out;
}

std::int64_t Mesh::axis_size(const AxisRef& axis) const {
  if (axis.is_position()) return axis_size(named(axis));
  std::int64_t whole = axes()[axis_index(axis.name)].size;
  if (axis.is_whole()) return whole;
  if (axis.pre_size < 1 || axis.size < 1 || whole % axis.pre_size != 0 ||
      whole / axis.pre_size % axis.size != 0)
    throw_invalid({}, "[mesh] sub-axis ", axis, " does not divide its axis of size ", whole, " in ",
                  *this);
  return axis.size;
}

std::span<const Digit> Mesh::modes_of(std::size_t axis) const {
  std::size_t begin = axis == 0 ? 0 : state_->ends[axis - 1];
  return {state_->modes.begin() + begin, state_->modes.begin() + state_->ends[axis]};
}

Digits Mesh::axis_digits(std::size_t axis) const {
  Digits digits;
  digits.append(modes_of(axis));
  return digits;
}

Layout Mesh::axis_layout(std::size_t axis) const {
  if (axis >= rank())
    throw Error(ErrorCode::kOutOfRange, cat("[mesh] axis index ", axis, " is out of range for the ",
                                            rank(), " axes of ", *this));
  return axis_digits(axis).layout();
}

Layout Mesh::layout() const {
  std::vector<Layout> layouts;
  for (std::size_t i = 0; i < rank(); ++i) layouts.push_back(axis_layout(i));
  return concatenate(std::span<const Layout>(layouts));
}

Mesh::Axes Mesh::all_axes() const {
  Axes all;
  for (std::size_t i = 0; i < rank(); ++i)
    all.push_back({axes()[i].name, axis_digits(i), axes()[i].kind});
  return all;
}

Mesh::Axes Mesh::axes_named(const AxisNames& names, SourceLocation where) const {
  Axes named;
  try {
    for (std::string_view name : names) {
      std::size_t i = axis_index(name);
      named.push_back({axes()[i].name, axis_digits(i), axes()[i].kind});
    }
  } catch (const Error& error) {
    throw error.at(where);
  }
  return named;
}

Digits Mesh::merged(const Axes& axes) {
  Digits all;
  for (const Axis& axis : axes) all.append(axis.digits.modes());
  return all;
}

// The kind of an axis that merges these; axes of size 1 are ignored.
AxisKind Mesh::merged_kind(const Axes& axes, SourceLocation where) const {
  const Axis* first = nullptr;
  for (const Axis& axis : axes) {
    if (axis.digits.size() == 1) continue;
    if (!first) first = &axis;
    if (axis.kind != first->kind)
      throw_invalid(where, "[mesh] \"", first->name, "\" and \"", axis.name, "\" of ", *this,
                    " cannot be merged into one axis: one is explicit, and the other is auto");
  }
  return first ? first->kind : AxisKind::kAuto;
}

Digits Mesh::digits(const AxisList& list) const {
  Digits all;
  std::optional<AxisRef> renamed;  // a copy of each name would take a tenth of the time
  for (const AxisRef& given : list) {
    const AxisRef& ref = given.is_position() ? renamed.emplace(named(given)) : given;
    std::size_t index = axis_index(ref.name);
    if (ref.is_whole()) {
      all.append(modes_of(index));
      continue;
    }
    Digits axis = axis_digits(index);
    std::int64_t size = axis_size(ref), rest = axis.size() / (ref.pre_size * size);
    // The remainders of the axis on both sides of the part must be digits too.
    cut(axis, ref.pre_size, size * rest).value();
    cut(axis, rest, 1).value();
    all.append(cut(axis, size, rest).value().modes());
  }
  if (list.size() > 1 && !all.is_orthogonal())
    throw_invalid({}, "[mesh] an axis is used twice in ", meshard::to_string(list), " over ",
                  *this);
  return all;
}

// Extracts a part of an axis: `size` of its indices, with step `stride`.
// @error the part does not consist of whole steps of the axis's modes.
Result<Digits> Mesh::cut(const Digits& axis, std::int64_t size, std::int64_t stride) {
  Result<Layout> part = composition(axis.layout(), Layout(size, stride));
  if (!part) return part.error();
  Digits digits;
  for (std::size_t i = 0; i < part->shape().leaves().size(); ++i)
    digits.push_back({part->shape().leaves()[i], part->stride().leaves()[i]});
  // A composition may end inside a mode (2:1 of 3:1), but then its steps are no digit of the index.
  Digits wanted;
  wanted.push_back({size, stride});
  Result<Digits> steps = digits.within(axis);
  if (!steps) return steps.error();
  if (*steps != wanted)
    return Error(
        ErrorCode::kInvalidArgument,
        cat("[mesh] ", size, ":", stride, " does not consist of whole modes of ", axis.layout()));
  return digits;
}

void Mesh::position_error(std::int64_t position) const {
  throw Error(ErrorCode::kOutOfRange,
              cat("[mesh] position ", position, " is not in ", *this, " of ", size(), " devices"));
}

RankMap Mesh::ranks(std::int64_t row) const {
  if (row < 0 || row >= rows())
    throw Error(ErrorCode::kOutOfRange, cat("[mesh] row index ", row, " is out of range for the ",
                                            rows(), " rows of ", *this));
  return row == 0 ? rank_map()
                  : root_state().rank_map.view(state_->offset + state_->rows.offset(row),
                                               merged(all_axes()));
}

std::int64_t Mesh::device_id(std::int64_t position) const {
  check_position(position);
  if (rows() > 1) [[unlikely]]
    throw_invalid({}, "[mesh] ", *this, " has ", rows(), " rows, so position ", position,
                  " is ambiguous: pass seen_from, or use the devices of one row, ranks(row)");
  return state_->rank_map[position];
}

std::int64_t Mesh::position_at(IntView coordinate) const {
  bool inside = coordinate.size() == rank();
  std::int64_t position = 0;
  for (std::size_t i = 0; inside && i < rank(); ++i) {
    inside = coordinate[i] >= 0 && coordinate[i] < shape()[i];
    position = position * shape()[i] + coordinate[i];
  }
  if (!inside)
    throw Error(ErrorCode::kOutOfRange,
                cat("[mesh] coordinate ", IntTuple::flat(coordinate), " is not in ", *this));
  return position;
}

std::int64_t Mesh::device_id(IntView coordinate) const {
  return device_id(position_at(coordinate));
}

std::optional<std::int64_t> Mesh::device_id(IntView coordinate, std::int64_t seen_from) const {
  std::int64_t position = position_at(coordinate);
  std::optional<std::int64_t> seen = row(seen_from);
  if (!seen) return std::nullopt;
  return ranks(*seen)[position];
}

DeviceIds Mesh::device_ids() const { return DeviceIds(*this); }

DeviceIds::DeviceIds(const Mesh& mesh) : map_(mesh.rank_map()) {
  if (mesh.rows() == 1) return;
  Digits all = mesh.state_->rows;
  all.append(mesh.state_->modes);
  map_ = mesh.root_state().rank_map.view(mesh.state_->offset, all);
}

std::int64_t DeviceIds::operator[](std::int64_t i) const {
  if (i < 0 || i >= size())
    throw Error(ErrorCode::kOutOfRange, cat("[mesh] device index ", i,
                                            " is out of range: the number of devices is ", size()));
  return map_[i];
}

// The index of a device in the root's rank map; none if this mesh does not have the device.
std::optional<std::int64_t> Mesh::index_of(std::int64_t device_id) const {
  std::optional<std::int64_t> index = root_state().rank_map.find(device_id);
  if (!index || base_state().root == nullptr) return index;
  if (*index < state_->offset || !base_state().domain.covers(*index - state_->offset))
    return std::nullopt;
  return index;
}

std::optional<std::int64_t> Mesh::position(std::int64_t device_id) const {
  std::optional<std::int64_t> index = index_of(device_id);
  if (!index) return std::nullopt;
  std::int64_t position = 0;
  for (const Digit& mode : state_->modes)
    position = position * mode.size + *index / mode.stride % mode.size;
  return position;
}

std::optional<std::int64_t> Mesh::row(std::int64_t device_id) const {
  std::optional<std::int64_t> index = index_of(device_id);
  if (!index) return std::nullopt;
  return state_->rows(*index);
}

std::optional<IntVector> Mesh::coordinate(std::int64_t device_id) const {
  std::optional<std::int64_t> index = index_of(device_id);
  if (!index) return std::nullopt;
  IntVector coordinate;
  const Digit* mode = state_->modes.begin();
  for (std::uint16_t end : state_->ends) {
    std::int64_t along = 0;
    for (const Digit* last = state_->modes.begin() + end; mode != last; ++mode)
      along = along * mode->size + *index / mode->stride % mode->size;
    coordinate.push_back(along);
  }
  return coordinate;
}

IntVector Mesh::coordinate_at(std::int64_t position) const {
  check_position(position);
  IntVector coordinate(shape());
  for (std::size_t i = coordinate.size(); i-- > 0;) {
    std::int64_t size = coordinate[i];
    coordinate[i] = position % size;
    position /= size;
  }
  return coordinate;
}

bool Mesh::same_devices(const Mesh& other) const {
  if (state_ == other.state_) return true;
  const State &mine = base_state(), &theirs = other.base_state();
  if (&mine == &theirs) return true;
  return same_platform(*this, other) && mine.rank_map.same_devices(theirs.rank_map);
}

DeviceGroups Mesh::groups(const AxisList& axes) const {
  Digits along = digits(axes);
  const Digits& domain = base_state().domain;
  return DeviceGroups(root_state().table->groups(along, root_state().rank_map), state_->offset,
                      domain.without(along), domain, shared_root());
}

std::optional<DeviceGroup> Mesh::group(const AxisList& axes, std::int64_t device_id) const {
  Digits along = digits(axes);
  std::optional<std::int64_t> index = index_of(device_id);
  if (!index) return std::nullopt;
  return DeviceGroup(root_state().table->groups(along, root_state().rank_map),
                     *index - along.part_of(*index), shared_root());
}

std::optional<std::int64_t> Mesh::local_rank(const AxisList& axes, std::int64_t device_id,
                                             RankOrder order) const {
  if (order == RankOrder::kMesh) {
    Digits along = digits(axes);
    std::optional<std::int64_t> index = index_of(device_id);
    return index ? std::optional(along(*index)) : std::nullopt;
  }
  std::optional<DeviceGroup> own = group(axes, device_id);
  return own ? own->sorted_local_rank(device_id) : std::nullopt;
}

// Compares names, and the steps of each axis over the base's devices. The root of a submesh is
// ignored, so that [4..7] of 8 devices equals a mesh made of these four.
bool Mesh::equal_state(const Mesh& other) const {
  const State &a = *state_, &b = *other.state_;
  if (a.hash != b.hash || a.axes != b.axes) return false;
  const State &base = base_state(), &other_base = other.base_state();
  if (&base != &other_base && (base.rank_map != other_base.rank_map ||
                               root_state().properties != other.root_state().properties))
    return false;
  if (&base == &other_base || (!base.root && !other_base.root))
    return a.modes == b.modes && a.ends == b.ends;
  for (std::size_t i = 0; i < rank(); ++i) {
    std::optional<Digits> mine = axis_in_base(i), theirs = other.axis_in_base(i);
    if (mine.has_value() != theirs.has_value()) return false;
    if (mine ? *mine != *theirs : !same_steps_in_root(other, i)) return false;
  }
  return true;
}

// Compares axes that no layout over the positions of base() describes.
bool Mesh::same_steps_in_root(const Mesh& other, std::size_t axis) const {
  return base_state().offset == other.base_state().offset &&
         base_state().domain == other.base_state().domain &&
         axis_digits(axis) == other.axis_digits(axis) &&
         root_state().rank_map == other.root_state().rank_map;
}

// The digits of an axis over the positions of base(); none if no layout describes it.
std::optional<Digits> Mesh::axis_in_base(std::size_t axis) const {
  Digits digits = axis_digits(axis);
  if (!base_state().root) return digits;
  Result<Digits> within = digits.within(merged(base().all_axes()));
  return within ? std::optional(*within) : std::nullopt;
}

Mesh Mesh::root() const { return state_->root ? Mesh(state_->root) : *this; }
Mesh Mesh::base() const { return state_->base ? Mesh(state_->base) : *this; }

Mesh Mesh::as_root(SourceLocation where) const {
  if (rows() > 1)
    throw_invalid(where, "[mesh] ", *this, " has ", rows(),
                  " rows, but a root mesh has one: use a submesh of it");
  std::vector<MeshAxis> own(axes().begin(), axes().end());
  std::shared_ptr<State> state = root_state_of(own, rank_map(), where);
  state->properties = root_state().properties;
  return finished(std::move(state));
}

Mesh Mesh::with_axis_kind(const AxisNames& names, AxisKind kind, SourceLocation where) const {
  axes_named(names, where);
  Mesh own = as_root(where);
  std::vector<MeshAxis> changed(axes().begin(), axes().end());
  for (std::string_view name : names) changed[axis_index(name)].kind = kind;
  std::shared_ptr<State> state = root_state_of(changed, own.rank_map(), where);
  state->properties = root_state().properties;
  return finished(std::move(state));
}

Mesh Mesh::with_properties(Properties properties, SourceLocation where) const {
  if (properties == root_state().properties && is_root()) return *this;
  Mesh own = as_root(where);  // checks that it has one row
  std::shared_ptr<State> state =
      root_state_of({axes().begin(), axes().end()}, own.rank_map(), where);
  state->properties = std::move(properties);
  return finished(std::move(state));
}

Mesh Mesh::with_device_type(std::string device_type, SourceLocation where) const {
  for (char c : device_type)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_')
      throw_invalid(where, "[mesh] invalid device type \"", device_type,
                    "\": use the name of a platform, such as cpu, cuda or tpu");
  Properties changed = root_state().properties;
  changed.device_type = std::move(device_type);
  return with_properties(std::move(changed), where);
}

Mesh Mesh::with_uneven(Uneven uneven, SourceLocation where) const {
  Properties changed = root_state().properties;
  changed.uneven = uneven;
  return with_properties(std::move(changed), where);
}

bool Mesh::same_root(const Mesh& other) const { return &root_state() == &other.root_state(); }

std::vector<std::pair<std::string, Layout>> Mesh::flattened() const {
  std::vector<std::pair<std::string, Layout>> names;
  for (const RootTable::FlatAxis& axis : root_state().table->flat_axes())
    names.emplace_back(axis.name, axis.digits.layout());
  return names;
}

}  // namespace meshard

#include "meshard/sharding/sharding.h"

#include <algorithm>
#include <array>

#include "meshard/base/fingerprint.h"
#include "meshard/base/threads.h"
#include "meshard/layout/text_scanner.h"
#include "meshard/mesh/device_type.h"

namespace meshard {
namespace {

PartitionSpec extended(const Mesh& mesh, const PartitionSpec& spec, std::size_t rank,
                       SourceLocation where) {
  if (spec.size() > rank)
    throw_invalid(where, "[sharding] ", spec, " has ", spec.size(),
                  " dimensions, but the tensor has ", rank, " (over ", mesh, ")");
  if (spec.size() == rank) return spec;
  std::vector<DimensionSpec> dimensions = spec.dimensions();
  dimensions.resize(rank);
  return PartitionSpec(std::move(dimensions));
}

// Replaces a sub-axis that covers its axis by the axis, and merges adjacent parts of one axis.
AxisList normalized(const Mesh& mesh, const AxisList& axes) {
  AxisList out;
  for (const AxisRef& axis : axes) push_axis(mesh, out, axis);
  return out;
}

// Replaces axes given by position with their names in this mesh.
void name_positions(const Mesh& mesh, PartitionSpec& spec, SourceLocation where) {
  auto has_positions = [](const DimensionSpec& dimension) {
    return std::any_of(dimension.axes().begin(), dimension.axes().end(),
                       [](const AxisRef& axis) { return axis.is_position(); });
  };
  const std::vector<DimensionSpec>& given = spec.dimensions();
  if (std::none_of(given.begin(), given.end(), has_positions)) return;
  std::vector<DimensionSpec> dimensions;
  for (std::size_t d = 0; d < given.size(); ++d) {
    try {
      dimensions.emplace_back(mesh.named(given[d].axes(), where), given[d].is_open());
    } catch (const Error& error) {
      throw error.with_note(cat("in dimension ", d, " of ", spec));
    }
  }
  spec = PartitionSpec(std::move(dimensions));
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a == 0 ? 0 : (a - 1) / b + 1; }

DimensionSlice tile_slice(std::int64_t dim, std::int64_t shard, std::int64_t index) {
  std::int64_t start = std::min(index * shard, dim);
  return {start, std::min(start + shard, dim)};
}

// A new root over all devices of a derived mesh. Several rows become an additional axis.
Mesh alone(const Mesh& mesh, SourceLocation where) {
  std::vector<MeshAxis> axes;
  if (mesh.rows() > 1) {
    std::string name = "rows";
    while (mesh.find_axis(name)) name += '_';
    axes.push_back({name, mesh.rows()});
  }
  for (std::size_t i = 0; i < mesh.rank(); ++i)  // axes of size 1 may share a name
    if (mesh.find_axis(mesh.axes()[i].name) == i) axes.push_back(mesh.axes()[i]);
  return Mesh(std::move(axes), mesh.device_ids().rank_map(), where)
      .with_device_type(mesh.device_type(), where)
      .with_uneven(mesh.uneven(), where);
}

}  // namespace

void Sharding::check_axis(const State& state, const AxisRef& axis, std::string_view use,
                          SourceLocation where) {
  try {
    state.mesh.axis_size(axis);
  } catch (const Error& error) {
    throw Error(
        error.code(),
        cat("[sharding] ", use, " of ", state.spec, " over ", state.mesh, ": ", error.message()),
        where);
  }
}

Sharding::Sharding(State state, SourceLocation where) {
  const Mesh& mesh = state.mesh;
  name_positions(mesh, state.spec, where);
  state.replicated = mesh.named(state.replicated, where);
  state.unreduced = mesh.named(state.unreduced, where);
  struct Use {
    AxisRef axis;
    std::string by;
  };
  std::vector<Use> uses;
  auto use = [&](const AxisList& list, const std::string& by) {
    for (const AxisRef& axis : list) {
      check_axis(state, axis, by, where);
      for (const Use& earlier : uses)
        if (axis.overlaps(earlier.axis))
          throw_invalid(where, "[sharding] axis ", axis, " is used twice: by ", earlier.by,
                        " and by ", by, " of ", state.spec, " over ", mesh);
      uses.push_back({axis, by});
    }
  };
  std::vector<DimensionSpec> dimensions;
  for (std::size_t d = 0; d < state.spec.size(); ++d) {
    use(state.spec[d].axes(), cat("dimension ", d));
    dimensions.emplace_back(normalized(mesh, state.spec[d].axes()), state.spec[d].is_open());
  }
  use(state.replicated, "the replicated axes");
  use(state.unreduced, "the unreduced axes");
  AxisList used;
  for (const Use& u : uses) used.push_back(u.axis);
  try {
    remaining_axes(mesh, used);  // checks that gaps between sub-axes are whole sub-axes
  } catch (const Error& error) {
    throw error.at(where);
  }

  if (!mesh.is_base()) {  // stored over the base, which meshes of one root have in common
    state_ = Sharding(on_base(state, where), where).state_;
    return;
  }

  auto mesh_order = [&](const AxisList& list) {
    return remaining_axes(mesh, remaining_axes(mesh, list));
  };
  state.spec = PartitionSpec(std::move(dimensions));
  state.replicated = mesh_order(state.replicated);
  state.unreduced = mesh_order(state.unreduced);
  state.hash = hash_combine(mesh.hash(), state.spec.hash());
  for (const AxisRef& axis : state.replicated) state.hash = hash_combine(state.hash, axis.hash());
  if (state.unreduced.empty()) state.unreduced_kind = UnreducedKind::kSum;
  for (const AxisRef& axis : state.unreduced)
    state.hash =
        hash_combine(state.hash, ~axis.hash() + static_cast<std::size_t>(state.unreduced_kind));
  AxisList splitting;
  for (std::size_t d = 0; d < state.spec.size(); ++d) {
    state.index.push_back(AxesIndex(mesh, state.spec[d].axes()));
    state.tiles *= state.index[d].size();
    for (const AxisRef& axis : state.spec[d].axes()) splitting.push_back(axis);
  }
  state.replica = AxesIndex(mesh, remaining_axes(mesh, splitting));
  state_ = std::make_shared<const State>(std::move(state));
}

// The same state over the base of its mesh: flattened, unflattened and sliced axes become axes and
// sub-axes of the base. If that is not possible, over a new root.
Sharding::State Sharding::on_base(const State& derived, SourceLocation where) {
  const Mesh& mesh = derived.mesh;
  State state{.mesh = mesh.base(), .spec = {}, .unreduced_kind = derived.unreduced_kind};
  bool found = true;
  auto in_base = [&](const AxisList& list) {
    Result<AxisList> axes = mesh.axes_in_base(list);
    found = found && axes.ok();
    return axes.value_or(AxisList());
  };
  std::vector<DimensionSpec> dimensions;
  for (const DimensionSpec& dimension : derived.spec.dimensions())
    dimensions.emplace_back(in_base(dimension.axes()), dimension.is_open());
  state.spec = PartitionSpec(std::move(dimensions));
  state.replicated = in_base(derived.replicated);
  state.unreduced = in_base(derived.unreduced);
  if (found) return state;
  return State{.mesh = alone(mesh, where),
               .spec = derived.spec,
               .replicated = derived.replicated,
               .unreduced = derived.unreduced,
               .unreduced_kind = derived.unreduced_kind};
}

// The states that this thread made last, while shardings use them. Programs mark hundreds of values
// in a few ways; making a state takes a few microseconds.
class Sharding::Recent {
 public:
  std::shared_ptr<const State> find(const Mesh& mesh, const PartitionSpec& spec,
                                    std::size_t rank) const {
    for (std::size_t i = 1; i <= kKept; ++i) {
      std::shared_ptr<const State> state = states_[(next_ + kKept - i) % kKept].lock();
      if (state && state->mesh.is_same_object(mesh) && describes(*state, spec, rank)) return state;
    }
    return nullptr;
  }
  void add(const std::shared_ptr<const State>& state) { states_[next_++ % kKept] = state; }

 private:
  static constexpr std::size_t kKept = 8;

  static bool describes(const State& state, const PartitionSpec& spec, std::size_t rank) {
    if (state.spec.size() != rank || spec.size() > rank || !state.replicated.empty() ||
        !state.unreduced.empty())
      return false;
    for (std::size_t d = 0; d < rank; ++d)
      if (d < spec.size() ? !(state.spec[d] == spec[d])
                          : !state.spec[d].axes().empty() || state.spec[d].is_open())
        return false;
    return true;
  }

  std::array<std::weak_ptr<const State>, kKept> states_;
  std::size_t next_ = 0;
};

Sharding::Sharding(Mesh mesh, const PartitionSpec& spec, SourceLocation where)
    : Sharding(std::move(mesh), spec, spec.size(), where) {}

Sharding::Sharding(Mesh mesh, const PartitionSpec& spec, std::size_t rank, SourceLocation where) {
  Recent& recent = internal::thread_instance<Recent>();
  state_ = recent.find(mesh, spec, rank);
  if (state_) return;
  state_ = Sharding(State{.mesh = mesh, .spec = extended(mesh, spec, rank, where)}, where).state_;
  recent.add(state_);
}

Sharding Sharding::replicated(Mesh mesh, std::size_t rank) {
  return Sharding(std::move(mesh), PartitionSpec(), rank);
}

Sharding Sharding::with_replicated(const AxisList& axes, SourceLocation where) const {
  return Sharding(State{.mesh = mesh(),
                        .spec = spec(),
                        .replicated = axes,
                        .unreduced = unreduced_axes(),
                        .unreduced_kind = unreduced_kind()},
                  where);
}

Sharding Sharding::with_unreduced(const AxisList& axes, UnreducedKind kind,
                                  SourceLocation where) const {
  return Sharding(State{.mesh = mesh(),
                        .spec = spec(),
                        .replicated = replicated_axes(),
                        .unreduced = axes,
                        .unreduced_kind = kind},
                  where);
}

Sharding Sharding::with_rank(std::size_t rank, SourceLocation where) const {
  if (rank == this->rank()) return *this;
  return Sharding(State{.mesh = mesh(),
                        .spec = extended(mesh(), spec(), rank, where),
                        .replicated = replicated_axes(),
                        .unreduced = unreduced_axes(),
                        .unreduced_kind = unreduced_kind()},
                  where);
}

AxisList Sharding::unused_axes() const {
  AxisList splitting;
  for (std::size_t d = 0; d < rank(); ++d)
    for (const AxisRef& axis : axes(d)) splitting.push_back(axis);
  return remaining_axes(mesh(), splitting);
}

void Sharding::check_dims(IntView dims) const {
  if (dims.size() < rank()) [[unlikely]]
    throw_invalid({}, "[sharding] ", spec(), " has ", rank(), " dimensions, but the tensor (",
                  join(dims, ","), ") has ", dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (dims[d] < 0) [[unlikely]]
      throw_invalid({}, "[sharding] dimension ", d, " of (", join(dims, ","), ") is negative");
}

IntVector Sharding::shard_shape(IntView dims) const {
  check_dims(dims);
  IntVector shard(dims);
  for (std::size_t d = 0; d < rank(); ++d) shard[d] = ceil_div(dims[d], num_tiles(d));
  return shard;
}

IntVector Sharding::padded_shape(IntView dims) const {
  IntVector padded = shard_shape(dims);
  for (std::size_t d = 0; d < rank(); ++d)
    if (__builtin_mul_overflow(padded[d], num_tiles(d), &padded[d]))
      throw_invalid({}, "[sharding] dimension ", d, " = ", dims[d], " padded for ", num_tiles(d),
                    " tiles does not fit 64 bits");
  return padded;
}

bool Sharding::is_even(IntView dims) const {
  check_dims(dims);
  for (std::size_t d = 0; d < rank(); ++d)
    if (dims[d] % num_tiles(d) != 0) return false;
  return true;
}

Box Sharding::slice(IntView dims, std::int64_t position) const {
  check_dims(dims);
  mesh().check_position(position);
  Box slices;
  slices.reserve(dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d)
    slices.push_back(tile_slice(dims[d], ceil_div(dims[d], num_tiles(d)), tile_index(d, position)));
  return slices;
}

SliceTable Sharding::slices(IntView dims) const {
  IntVector shard = shard_shape(dims);
  SliceTable table(dims.size(), static_cast<std::size_t>(mesh().size()));
  std::vector<std::int64_t> index(table.size(), 0);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (d < rank())
      state_->index[d].fill(index);
    else
      std::fill(index.begin(), index.end(), 0);
    for (std::size_t i = 0; i < index.size(); ++i)
      table[i][d] = tile_slice(dims[d], shard[d], index[i]);
  }
  return table;
}

SliceTable Sharding::distinct_slices(IntView dims) const {
  IntVector shard = shard_shape(dims);
  IntVector
      count;  // by dimension: the tiles that are not empty, and one empty one if there are any
  std::size_t total = 1;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    std::int64_t filled = shard[d] == 0 ? 0 : ceil_div(dims[d], shard[d]);
    count.push_back(std::min(filled + 1, num_tiles(d)));
    total *= static_cast<std::size_t>(count[d]);
  }
  SliceTable table(dims.size(), total);
  for (std::size_t i = 0; i < total; ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i);
    for (std::size_t d = dims.size(); d-- > 0;) {
      table[i][d] = tile_slice(dims[d], shard[d], rest % count[d]);
      rest /= count[d];
    }
  }
  return table;
}

std::int64_t Sharding::replica_id(IntView dims, std::int64_t position) const {
  check_dims(dims);
  mesh().check_position(position);
  struct Range {
    std::int64_t first, last;  // tiles of the dimension with the position's slice
  };
  InlineVector<Range, 4> same;
  IntVector tile;
  bool alone = true;
  for (std::size_t d = 0; d < rank(); ++d) {
    std::int64_t index = tile_index(d, position), shard = ceil_div(dims[d], num_tiles(d));
    std::int64_t filled = shard == 0 ? 0 : ceil_div(dims[d], shard);
    same.push_back(index < filled ? Range{index, index} : Range{filled, num_tiles(d) - 1});
    alone = alone && same[d].first == same[d].last;
    tile.push_back(same[d].first);
  }
  if (alone) return replica_id(position);
  std::int64_t earlier = 0;
  while (true) {  // over the tiles with this slice: their replicas ascend, so a binary search
                  // counts them
    std::int64_t low = 0, high = num_replicas();
    while (low < high) {
      std::int64_t middle = low + (high - low) / 2;
      if (position_of(tile, middle) < position)
        low = middle + 1;
      else
        high = middle;
    }
    earlier += low;
    std::size_t d = rank();
    while (d > 0 && tile[d - 1] == same[d - 1].last) --d, tile[d] = same[d].first;
    if (d == 0) return earlier;
    ++tile[d - 1];
  }
}

bool Sharding::is_equivalent_to(const Sharding& other, std::size_t rank) const {
  for (const Sharding* sharding : {this, &other})
    if (sharding->rank() > rank)
      throw_invalid({}, "[sharding] ", *sharding, " describes ", sharding->rank(),
                    " dimensions, more than ", rank);
  if (state_ == other.state_) return true;
  if (mesh().rank_map() != other.mesh().rank_map() || !same_platform(mesh(), other.mesh()))
    return false;
  static const AxesIndex whole{};
  auto index = [](const Sharding& s, std::size_t d) -> const AxesIndex& {
    return d < s.rank() ? s.state_->index[d] : whole;
  };
  for (std::size_t d = 0; d < rank; ++d)  // coalesced digits are unique
    if (index(*this, d) != index(other, d)) return false;
  return unreduced_kind() == other.unreduced_kind() &&
         AxesIndex(mesh(), unreduced_axes()) == AxesIndex(other.mesh(), other.unreduced_axes());
}

bool Sharding::same_placement(const Sharding& other, std::size_t rank) const {
  if (is_equivalent_to(other, rank)) return true;
  if (mesh().rank_map() == other.mesh().rank_map() || !mesh().same_devices(other.mesh()))
    return false;
  for (std::size_t d = 0; d < rank; ++d)
    if (num_tiles(d) != other.num_tiles(d)) return false;
  AxesIndex mine(mesh(), unreduced_axes()), theirs(other.mesh(), other.unreduced_axes());
  if (mine.size() != theirs.size() || unreduced_kind() != other.unreduced_kind()) return false;
  for (std::int64_t p = 0; p < mesh().size(); ++p) {
    std::int64_t q = *other.mesh().position(mesh().rank_map()[p]);
    for (std::size_t d = 0; d < rank; ++d)
      if (tile_index(d, p) != other.tile_index(d, q)) return false;
    if (mine(p) != theirs(q)) return false;
  }
  return true;
}

bool Sharding::equal_state(const Sharding& other) const {
  const State &a = *state_, &b = *other.state_;
  return a.hash == b.hash && a.mesh == b.mesh && a.spec == b.spec && a.replicated == b.replicated &&
         a.unreduced == b.unreduced && a.unreduced_kind == b.unreduced_kind;
}

std::string Sharding::unreduced_text() const {
  std::string axes = meshard::to_string(unreduced_axes());
  return unreduced_kind() == UnreducedKind::kSum ? axes : cat(enum_name(unreduced_kind()), axes);
}

UnreducedKind Sharding::read_unreduced_kind(TextScanner& scanner) {
  for (const auto& [kind, name] : EnumNames<UnreducedKind>::kNames)
    if (scanner.accept(name)) return kind;
  return UnreducedKind::kSum;
}

std::string Sharding::to_string() const {
  std::string out = cat("Sharding(", mesh(), ", ", spec());
  if (!replicated_axes().empty())
    append(out, cat(", replicated=", meshard::to_string(replicated_axes())));
  if (!unreduced_axes().empty()) append(out, cat(", unreduced=", unreduced_text()));
  return out + ")";
}

Result<Sharding> Sharding::parse(std::string_view text) {
  return parse_whole("sharding", text, [](TextScanner& scanner) {
    auto read_axes = [&] {
      AxisList list;
      scanner.expect("{");
      scanner.list("}", [&] { list.push_back(AxisRef::read(scanner)); });
      return list;
    };
    scanner.expect("Sharding");
    scanner.expect("(");
    Mesh mesh = Mesh::read(scanner);
    scanner.expect(",");
    State state{.mesh = std::move(mesh), .spec = PartitionSpec::read(scanner)};
    while (scanner.accept(",")) {
      bool replicated = scanner.accept("replicated");
      if (!replicated) scanner.expect("unreduced");
      scanner.expect("=");
      if (!replicated) state.unreduced_kind = read_unreduced_kind(scanner);
      (replicated ? state.replicated : state.unreduced) = read_axes();
    }
    scanner.expect(")");
    return Sharding(std::move(state), SourceLocation{});
  });
}

std::string SliceTable::to_string() const {
  std::string out;
  for (std::size_t i = 0; i < size(); ++i)
    append(out, cat(i == 0 ? "[" : ", [", join((*this)[i], ", "), ']'));
  return cat('{', out, '}');
}

}  // namespace meshard

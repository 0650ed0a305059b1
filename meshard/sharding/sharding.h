// How a tensor is distributed over a mesh: the axes that split each dimension.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/box.h"
#include "meshard/base/enum_names.h"
#include "meshard/base/inline_vector.h"
#include "meshard/base/result.h"
#include "meshard/base/source_location.h"
#include "meshard/mesh/axes_index.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/partition_spec.h"

namespace meshard {

/// A value: the boxes of many positions or tiles, in one block of memory.
class SliceTable {
 public:
  SliceTable(std::size_t rank, std::size_t count)
      : rank_(rank), count_(count), all_(rank * count) {}
  std::size_t size() const { return count_; }
  std::span<const DimensionSlice> operator[](std::size_t i) const {
    return {all_.data() + i * rank_, rank_};
  }
  std::span<DimensionSlice> operator[](std::size_t i) { return {all_.data() + i * rank_, rank_}; }
  /// `{[0:8, 0:2], [0:8, 2:4]}`.
  std::string to_string() const;

 private:
  std::size_t rank_, count_;
  std::vector<DimensionSlice> all_;
};

/// How the shards along unreduced axes make the value (Shardy's reduction operations).
enum class UnreducedKind : std::uint8_t { kSum, kMax, kMin };
template <>
struct EnumNames<UnreducedKind> {
  static constexpr EnumName<UnreducedKind> kNames[] = {
      {UnreducedKind::kSum, "sum"}, {UnreducedKind::kMax, "max"}, {UnreducedKind::kMin, "min"}};
};

/// A value: how one tensor is distributed over a mesh. Holds the mesh, the axes that split each
/// dimension (in order, open or closed), the explicitly replicated axes, and the unreduced axes,
/// over which the shards are not combined yet. Immutable; copies share one state, and comparing a
/// sharding with its copy compares pointers. Equal shardings that a thread makes shortly one after
/// another share it, too.
///
/// Axes of a derived mesh (sliced, flattened or unflattened) are stored as axes and sub-axes of its
/// base, so that all shardings of one root can be combined; mesh() is the base. If axes cannot be
/// stored that way (8 x 3 over 6 x 4), mesh() is a new root.
///
/// A dimension split into n tiles has shards of ceil(size / n). Uneven sizes are allowed: if n does
/// not divide the size, the last shards are shorter or empty.
///
/// ```
/// Sharding s(mesh, P("data", none), 2);       // mesh<data=2, model=4>
/// s.shard_shape({16, 8});                     // (8, 8)
/// s.slice({16, 8}, 5);                        // [8, 16) and [0, 8)
/// ```
class Sharding {
 public:
  /// A sharding with as many dimensions as the spec.
  /// @error an axis that the mesh does not have; an axis that is used twice; a sub-axis that does
  /// not divide its axis. The message names the dimension and the mesh.
  Sharding(Mesh mesh, const PartitionSpec& spec, SourceLocation where = SourceLocation::current());
  /// A sharding of `rank` dimensions: those beyond the spec are not split.
  /// @error the errors of the constructor without a rank; the spec is longer than the rank.
  Sharding(Mesh mesh, const PartitionSpec& spec, std::size_t rank,
           SourceLocation where = SourceLocation::current());
  /// The sharding with the whole tensor on every device of the mesh.
  static Sharding replicated(Mesh mesh, std::size_t rank);

  /// The same with these axes explicitly replicated: the compiler must not use them for open
  /// dimensions.
  /// @error as the constructor's.
  Sharding with_replicated(const AxisList& axes,
                           SourceLocation where = SourceLocation::current()) const;
  /// The same with these axes unreduced: the value is the sum, the maximum or the minimum of the
  /// shards along them.
  /// @error as the constructor's.
  Sharding with_unreduced(const AxisList& axes, UnreducedKind kind,
                          SourceLocation where = SourceLocation::current()) const;
  /// The same with these axes unreduced by sums.
  Sharding with_unreduced(const AxisList& axes,
                          SourceLocation where = SourceLocation::current()) const {
    return with_unreduced(axes, UnreducedKind::kSum, where);
  }
  /// The same with the unreduced axes and the reduction of another sharding.
  Sharding with_unreduced_of(const Sharding& other,
                             SourceLocation where = SourceLocation::current()) const {
    return with_unreduced(other.unreduced_axes(), other.unreduced_kind(), where);
  }
  /// The same with closed, unsplit dimensions appended. @error rank is below rank().
  Sharding with_rank(std::size_t rank, SourceLocation where = SourceLocation::current()) const;

  const Mesh& mesh() const { return state_->mesh; }
  const PartitionSpec& spec() const { return state_->spec; }
  /// Number of dimensions described.
  std::size_t rank() const { return state_->spec.size(); }
  const AxisList& axes(std::size_t dimension) const { return state_->spec[dimension].axes(); }
  bool is_open(std::size_t dimension) const { return state_->spec[dimension].is_open(); }
  /// The explicitly replicated axes, in mesh order.
  const AxisList& replicated_axes() const { return state_->replicated; }
  /// The unreduced axes, over which the shards are not combined yet, in mesh order.
  const AxisList& unreduced_axes() const { return state_->unreduced; }
  /// How the shards along the unreduced axes make the value. @post kSum without such axes
  UnreducedKind unreduced_kind() const { return state_->unreduced_kind; }
  /// Axes that split no dimension, in mesh order: replicated or unreduced.
  AxisList unused_axes() const;

  /// True if every device holds the whole tensor.
  bool is_fully_replicated() const { return state_->tiles == 1; }
  /// The number of tiles of a dimension; 1 beyond rank().
  std::int64_t num_tiles(std::size_t dimension) const {
    return dimension < rank() ? state_->index[dimension].size() : 1;
  }
  /// The number of tiles of the tensor: the product over its dimensions.
  std::int64_t num_tiles() const { return state_->tiles; }
  /// The index of the tile of a dimension that a position holds. @pre the position is in the mesh
  std::int64_t tile_index(std::size_t dimension, std::int64_t position) const {
    return dimension < rank() ? state_->index[dimension](position) : 0;
  }

  // In all functions below, `dims` are the sizes of the tensor's dimensions.
  // @error fewer dimensions than rank(); a negative size; a position outside the mesh.

  /// The shape of one shard: ceil(size / tiles) in each dimension.
  IntVector shard_shape(IntView dims) const;
  /// The shape after padding to even sizes: shard size * tiles in each dimension.
  IntVector padded_shape(IntView dims) const;
  /// True if no dimension needs padding.
  bool is_even(IntView dims) const;
  /// The part of the tensor that a position holds, clamped to the tensor. One of the last shards
  /// can be empty: [n, n). Takes a few divisions.
  Box slice(IntView dims, std::int64_t position) const;
  /// slice() of every position, in mesh order. Takes one pass.
  SliceTable slices(IntView dims) const;
  /// The distinct slices in ascending (row-major) order. Empty tiles of one dimension count as one.
  SliceTable distinct_slices(IntView dims) const;

  /// The number of earlier positions with the same slice. Takes a few divisions, or, for an empty
  /// slice, a binary search for each empty tile.
  std::int64_t replica_id(IntView dims, std::int64_t position) const;
  /// The number of earlier positions that hold the same tile; the same number if no slice is empty.
  /// @pre the position is in the mesh
  std::int64_t replica_id(std::int64_t position) const { return state_->replica(position); }
  /// The position that holds replica `replica` of a tile, given by its index in each dimension.
  /// @pre tile.size() >= rank(); every index below num_tiles, the replica below num_replicas()
  /// @post tile_index(d, p) = tile[d] and replica_id(p) = replica
  std::int64_t position_of(IntView tile, std::int64_t replica) const {
    std::int64_t position = state_->replica.offset(replica);
    for (std::size_t d = 0; d < rank(); ++d) position += state_->index[d].offset(tile[d]);
    return position;
  }
  /// The number of devices that hold each tile.
  std::int64_t num_replicas() const { return state_->replica.size(); }

  /// True if the two are interchangeable in a program, for tensors of `rank` dimensions. Both must
  /// have the same devices in the same order, with the same part on each, and the same unreduced
  /// axes of the same kind. Axis names, open dimensions and replicated axes do not matter. This is
  /// JAX's `is_equivalent_to`.
  /// @error either describes more than `rank` dimensions.
  bool is_equivalent_to(const Sharding& other, std::size_t rank) const;
  /// True if each device holds the same part, so that no data has to move. The order of the devices
  /// does not matter; if it differs, the check takes one pass over the devices.
  /// @error either describes more than `rank` dimensions.
  bool same_placement(const Sharding& other, std::size_t rank) const;

  /// `Sharding(mesh<data=2, model=4>, P("data", none))`, with `, replicated={..}`, `,
  /// unreduced={..}` and `, unreduced=max{..}`.
  std::string to_string() const;
  static Result<Sharding> parse(std::string_view text);
  /// The unreduced axes as Shardy writes them: `{"x"}` for a sum, `max{"x"}`, `min{"x"}`.
  std::string unreduced_text() const;
  /// Reads the kind before such axes. @post kSum if the text has none
  static UnreducedKind read_unreduced_kind(TextScanner& scanner);

  std::size_t hash() const { return state_->hash; }
  /// True if one is a copy of the other, so that they are equal. Compares no elements of their
  /// state.
  bool is_copy_of(const Sharding& other) const { return state_ == other.state_; }
  friend bool operator==(const Sharding& a, const Sharding& b) {
    return a.state_ == b.state_ || a.equal_state(b);
  }

 private:
  struct State {
    Mesh mesh;
    PartitionSpec spec;
    AxisList replicated = {};
    AxisList unreduced = {};
    UnreducedKind unreduced_kind = UnreducedKind::kSum;
    // Computed from the fields above.
    InlineVector<AxesIndex, 4> index = {};  // by dimension
    AxesIndex replica = {};                 // along the unused axes
    std::int64_t tiles = 1;
    std::size_t hash = 0;
  };
  class Recent;
  explicit Sharding(State state, SourceLocation where);
  static State on_base(const State& derived, SourceLocation where);
  static void check_axis(const State& state, const AxisRef& axis, std::string_view use,
                         SourceLocation where);
  void check_dims(IntView dims) const;
  bool equal_state(const Sharding& other) const;

  std::shared_ptr<const State> state_;
};

}  // namespace meshard

template <>
struct std::hash<meshard::Sharding> {
  std::size_t operator()(const meshard::Sharding& sharding) const noexcept {
    return sharding.hash();
  }
};

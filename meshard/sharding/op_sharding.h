// XLA's OpSharding: the shardings of a value that may be a tuple.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/sharding/tile_assignment.h"

namespace meshard {

// torch_xla's sharding types.

/// torch_xla's sharding types, with torch_xla's numbers. (XLA numbers its own types differently.)
enum class ShardingType {
  kReplicated = 0,
  kMaximal = 1,  ///< the whole tensor on one device
  kTuple = 2,    ///< a list of shardings
  kTiled = 3,    ///< each device holds a tile of its own
  kManual = 4,
  kPartial = 5,  ///< partially replicated: several devices hold each tile. *Not* unreduced
  kUnknown = 6,
};

/// `REPLICATED`, `MAXIMAL`, ...
std::string_view to_string(ShardingType type);

/// The type of a partition spec that uses all axes of a mesh of `num_devices` devices. Maximal on
/// one device; otherwise replicated, partial or tiled if none, some or all of its dimensions are
/// split. A dimension with an axis of size 1 counts as split.
ShardingType sharding_type(const PartitionSpec& spec, std::int64_t num_devices);

/// The type that torch_xla 2.9 chooses for a mesh and a spec. Partial if there are more unused axes
/// than unsplit dimensions, otherwise the type of the spec. A scalar is replicated, an unreduced
/// value unknown.
/// The type depends on how the spec is written; canonical_type does not.
ShardingType sharding_type(const Sharding& sharding);

/// The type of a tile assignment: partial if there is a subgroup of replicas, tiled if each device
/// holds its own tile. Unreduced values are unknown, because torch_xla has no number for them.
ShardingType sharding_type(const TileAssignment& tiles);

/// The type that depends only on the placement: that of tile_assignment(sharding).
ShardingType canonical_type(const Sharding& sharding);

/// A value: the tile assignment of an array, or those of the arrays of a tuple, in order.
///
/// Text form: the TileAssignment's, or for a tuple `{{replicated}, {devices=[2]<=[2]}}`.
class OpSharding {
 public:
  explicit OpSharding(TileAssignment array) : elements_{std::move(array)} {}
  /// A tuple, possibly empty.
  explicit OpSharding(std::vector<TileAssignment> tuple)
      : is_tuple_(true), elements_(std::move(tuple)) {}

  bool is_tuple() const { return is_tuple_; }
  /// The assignments of the tuple; for an array, its one assignment.
  const std::vector<TileAssignment>& elements() const { return elements_; }
  ShardingType type() const {
    return is_tuple_ ? ShardingType::kTuple : sharding_type(elements_[0]);
  }
  /// The same with each element in canonical form. Two values are equivalent exactly if their
  /// canonical forms are equal.
  OpSharding canonical() const;

  std::string to_string() const;
  /// Parses both forms of each assignment (V1, V2). @error as TileAssignment::parse
  static Result<OpSharding> parse(std::string_view text);
  friend bool operator==(const OpSharding&, const OpSharding&) = default;

 private:
  bool is_tuple_ = false;
  std::vector<TileAssignment> elements_;
};

}  // namespace meshard

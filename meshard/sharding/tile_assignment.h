// A sharding in XLA's form: tiles and the devices that hold them (xla.OpSharding).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/layout/layout.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The kind of a tile assignment, or of one of its subgroup dimensions.
enum class TileKind { kReplicated, kMaximal, kTiled, kManual, kUnknown, kUnreduced };

/// `replicated`, `maximal`, `tiled`, ...
std::string_view to_string(TileKind kind);

/// A value: how many tiles each dimension has, and which device holds each tile. Devices are
/// logical devices, that is positions of a mesh, unless stated otherwise.
///
/// Text forms, as HLO prints them:
///
/// - `{replicated}`, `{manual}`, `{unknown}`, `{unreduced}`
/// - `{maximal device=3}`: the whole tensor on device 3
/// - `{devices=[2,2]0,2,1,3}`: V1, the devices of the tiles, row-major
/// - `{devices=[2,2]<=[2,2]T(1,0)}`: V2, an iota that is reshaped and transposed
/// - `{devices=[2,1,4]<=[8] last_tile_dim_replicate}`: the last dimension counts replicas
/// - `{devices=[2,2,2]<=[8] last_tile_dims={manual, replicated}}`: the last dimensions are
/// subgroups
struct TileAssignment {
  TileKind kind = TileKind::kReplicated;
  /// Tiles of each tensor dimension, then the sizes of the subgroup dimensions. kTiled only.
  std::vector<std::int64_t> dims = {};
  /// V1: a device for each tile, row-major. kMaximal: one device.
  std::vector<std::int64_t> devices = {};
  /// V2: the devices 0..n-1, reshaped to `reshape_dims` and transposed by `transpose_perm`.
  std::vector<std::int64_t> reshape_dims = {};
  std::vector<std::int64_t> transpose_perm = {};
  bool replicate_on_last_tile_dim = false;
  /// Kinds of the subgroup dimensions; empty if replicate_on_last_tile_dim is set.
  std::vector<TileKind> last_tile_dims = {};

  bool is_iota() const { return !reshape_dims.empty(); }
  /// Number of tensor dimensions. @pre kind is kTiled
  std::size_t rank() const {
    return dims.size() - (replicate_on_last_tile_dim ? 1 : last_tile_dims.size());
  }
  /// The layout that maps a tile number (row-major over `dims`) to a device. @pre is_iota(), valid
  Layout iota_layout() const;
  /// The device of each tile, row-major. @pre kind is kTiled, valid
  std::vector<std::int64_t> device_list() const;
  /// The same assignment in V1 form.
  TileAssignment listed() const;
  /// The shortest equivalent form: without subgroups of size 1, with a merged iota, or a single
  /// kind such as `{replicated}`. A list of devices stays a list.
  TileAssignment shortest() const;
  /// The same assignment in V1 form, with the devices of each group of replicas ascending.
  TileAssignment with_sorted_replicas() const;
  /// The form by which torch_xla compares shardings: the shortest, listed, replicas ascending. Two
  /// assignments put the same tile on each device exactly if these are equal.
  TileAssignment canonical() const { return shortest().with_sorted_replicas(); }
  /// Replaces positions of `mesh` by device ids, in V1 form. @pre all devices are positions of
  /// `mesh`
  TileAssignment with_device_ids(const Mesh& mesh) const;
  /// Replaces device ids by positions of `mesh`, in V1 form. @error a device that is not in `mesh`.
  Result<TileAssignment> with_positions(const Mesh& mesh) const;
  /// Checks that the fields are consistent.
  /// @error a size below 1; an invalid permutation; a negative or repeated device; both forms or
  /// neither; more subgroup dimensions than dimensions.
  Result<void> validate() const;

  std::string to_string() const;
  static Result<TileAssignment> parse(std::string_view text);
  static TileAssignment read(TextScanner& scanner);
  /// Compares the fields: the V1 and the V2 form of one assignment differ.
  friend bool operator==(const TileAssignment&, const TileAssignment&) = default;
};

/// The tile assignment of a sharding, in the short V2 form that XLA prints. Open dimensions appear
/// with their current split.
/// @post sharding_from_tiles(s.mesh(), tile_assignment(s), s.rank()) is equivalent to s.
TileAssignment tile_assignment(const Sharding& sharding);

/// The same, spelled out axis by axis. The iota is reshaped to the axes and sub-axes of the mesh
/// and transposed to the order in which the sharding uses them. This is the V2 form that torch_xla
/// passes to XLA.
/// @post shortest() of it is tile_assignment(sharding).
TileAssignment axis_tile_assignment(const Sharding& sharding);

/// The sharding over `mesh` that has a given tile assignment, for a tensor of `rank` dimensions.
/// `tiles` numbers devices by their position in `mesh`.
/// @error the assignment has other devices or another rank, is manual or unknown, or no order of
/// axes and sub-axes of `mesh` produces it.
Result<Sharding> sharding_from_tiles(const Mesh& mesh, const TileAssignment& tiles,
                                     std::size_t rank);

/// The same without a given mesh: creates one, with an axis `axis_0`, `axis_1`, ... for each
/// dimension of the assignment. Devices are device ids; a maximal assignment becomes a mesh of its
/// one device.
/// @param num_devices size of the mesh if the assignment lists no devices (replicated, unreduced)
/// @error the assignment has another rank, or is manual or unknown.
Result<Sharding> sharding_from_tiles(const TileAssignment& tiles, std::size_t rank,
                                     std::int64_t num_devices);

}  // namespace meshard

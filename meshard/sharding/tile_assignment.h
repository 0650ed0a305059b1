// A sharding as the compiler writes it: tiles and the devices that hold them (xla.OpSharding).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/layout/layout.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// What a tile assignment, or one of its last dimensions, says.
enum class TileKind { kReplicated, kMaximal, kTiled, kManual, kUnknown, kUnreduced };

/// `replicated`, `maximal`, `tiled`, ...
std::string_view to_string(TileKind kind);

/// A value: how many tiles each dimension has, and which device holds each tile. Devices are
/// logical, positions of a mesh, unless it is said that they are device ids.
///
/// Texts, as HLO prints them:
///
/// - `{replicated}`, `{manual}`, `{unknown}`, `{unreduced}`
/// - `{maximal device=3}`: all of it on device 3
/// - `{devices=[2,2]0,2,1,3}`: V1, the devices of the tiles, row-major
/// - `{devices=[2,2]<=[2,2]T(1,0)}`: V2, iota, reshaped, transposed
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
  /// Kinds of the subgroup dimensions, if not one of replicas.
  std::vector<TileKind> last_tile_dims = {};

  bool is_iota() const { return !reshape_dims.empty(); }
  /// Number of tensor dimensions. @pre kind is kTiled
  std::size_t rank() const {
    return dims.size() - (replicate_on_last_tile_dim ? 1 : last_tile_dims.size());
  }
  /// From tile number (row-major over `dims`) to device. @pre is_iota(), valid
  Layout iota_layout() const;
  /// The device of each tile, row-major. @pre kind is kTiled, valid
  std::vector<std::int64_t> device_list() const;
  /// The same in the V1 form.
  TileAssignment listed() const;
  /// The same in the fewest words: subgroups of one left out, the iota merged, `{replicated}` if
  /// that says it all. A list of devices stays one.
  TileAssignment shortest() const;
  /// The same in the V1 form, with the devices of each group of replicas ascending.
  TileAssignment with_sorted_replicas() const;
  /// The form by which torch_xla compares shardings: the shortest, listed, replicas ascending. Two
  /// assignments put the same tile on each device exactly if these are equal.
  TileAssignment canonical() const { return shortest().with_sorted_replicas(); }
  /// From positions of `mesh` to its device ids: the V1 form. @pre the positions are those of
  /// `mesh`
  TileAssignment with_device_ids(const Mesh& mesh) const;
  /// From device ids to positions of `mesh`: the V1 form. @error a device that is not in `mesh`.
  Result<TileAssignment> with_positions(const Mesh& mesh) const;
  /// @error sizes below 1, a permutation that is none, a negative or repeated device, both or none
  /// of the two forms, more subgroup dimensions than dimensions.
  Result<void> validate() const;

  std::string to_string() const;
  static Result<TileAssignment> parse(std::string_view text);
  static TileAssignment read(TextScanner& scanner);
  /// Same fields: the V1 and the V2 form of one assignment differ.
  friend bool operator==(const TileAssignment&, const TileAssignment&) = default;
};

/// The assignment of a sharding, in the V2 form, shortest as XLA prints it. Open dimensions are
/// printed as they are split now.
/// @post sharding_from_tiles(s.mesh(), tile_assignment(s), s.rank()) is equivalent to s.
TileAssignment tile_assignment(const Sharding& sharding);

/// The same, spelled axis by axis: the iota is reshaped to the axes and sub-axes of the mesh and
/// transposed to the order in which the sharding takes them. This is what torch_xla hands to XLA
/// in the V2 form.
/// @post shortest() of it is tile_assignment(sharding).
TileAssignment axis_tile_assignment(const Sharding& sharding);

/// The sharding of a tensor of `rank` dimensions over `mesh` behind an assignment: axes and
/// sub-axes of each dimension in order. `tiles` numbers devices by their position in `mesh`.
/// @error an assignment of other devices, of another rank, manual or unknown, or one that no order
/// of axes and sub-axes of `mesh` gives.
Result<Sharding> sharding_from_tiles(const Mesh& mesh, const TileAssignment& tiles,
                                     std::size_t rank);

/// The same with no mesh at hand: over a mesh of its own, with an axis `axis_0`, `axis_1`, ... for
/// each dimension of the assignment that is split. Devices are device ids; a maximal assignment is
/// a mesh of its one device.
/// @param num_devices size of the mesh where the assignment names no devices: replicated, unreduced
/// @error an assignment of another rank, manual or unknown.
Result<Sharding> sharding_from_tiles(const TileAssignment& tiles, std::size_t rank,
                                     std::int64_t num_devices);

}  // namespace meshard

// TPU topologies by name, without a TPU or its plugin, and the shape of each generation.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// How JAX 0.10 orders the devices of a small board (board_order.h).
enum class TpuBoardOrder : std::uint8_t {
  kAsListed,          ///< no special order
  kRingOfEight,       ///< a ring over the eight cores of 2 x 2 chips, repeated along an axis of 8
  kRingsOfTwoBoards,  ///< the same ring for one or two boards only
  kFlat,              ///< rings over 2 x 2 and 4 x 4 chips, rows over 2 x 4
};

/// A generation of TPUs.
struct TpuGeneration {
  /// In the names of topologies and targets: `v5e`.
  std::string_view name;
  /// The kinds of its devices: libtpu's names, and other names.
  std::vector<std::string_view> kinds;
  /// The directions of its grid, 2 or 3.
  std::size_t directions = 2;
  /// By default. A chip of two devices can be one device if `megacore`.
  std::int64_t devices_per_chip = 1;
  bool megacore = false;
  /// A direction of this many chips, or a multiple of it, is closed. 0: not known.
  std::int64_t closing_multiple = 0;
  TpuBoardOrder board_order = TpuBoardOrder::kAsListed;
  /// JAX and torch_xla make hybrid meshes of several devices per chip (hybrid_mesh.h).
  bool has_hybrid_cores = false;
};

/// All generations, oldest first.
std::span<const TpuGeneration> tpu_generations();

/// The generation with this name; nullptr if there is none.
const TpuGeneration* tpu_generation_named(std::string_view name);
/// The generation with devices of this kind; nullptr if there is none.
const TpuGeneration* tpu_generation_of(std::string_view kind);

/// The topology of a named TPU, as libtpu 0.0.51 lists its devices. Names are `v5e:8x8`,
/// `v5p:4x4x4`, `v5e:16x16*2` for several slices, `v4:4x4x4/megacore` for a v4 with one device per
/// chip. Families: v2, v3, v4, v5e, v5p, v6e, tpu7x.
///
/// Each process drives 2 x 2 chips; processes are numbered x first. Ids number the devices of a
/// chip first, then x, y, z. With several slices the ids of slice s start at (s + 1) * 100000.
/// @error an unknown name; a size that is below 1 or does not fit the processes; more than 100000
/// devices in one of several slices, or 16777216 in all.
Result<Topology> tpu_topology(std::string_view name);

}  // namespace meshard

// The shape of each generation of TPUs: kinds, devices of a chip, closed directions, order of
// boards. A new generation is one more row in tpu_generation.cc, and one in target/hardware.cc for
// its published figures (FLOPS, memory, links).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

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
  /// The kinds of its devices: what libtpu calls them, and what else they are called.
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

}  // namespace meshard

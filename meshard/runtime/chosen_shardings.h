// Reads the compiler's decisions from the compiled module.
#pragma once
#include <optional>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/hlo/module.h"
#include "meshard/lowering/lower.h"

namespace meshard {

/// The shardings that a compiled program uses for every argument and result.
struct ChosenShardings {
  std::vector<std::optional<Sharding>> arguments;
  std::vector<std::optional<Sharding>> results;
};

/// Reads the shardings from the optimized module. If the text specified a sharding, returns it,
/// after checking that the module's shard shapes match. Otherwise returns the compiler's choice,
/// over the program's first mesh with suitable axes, or else over a mesh made for it.
/// @error invalid argument if the compiler's choice is not a device placement; internal if it did
/// not use a specified sharding.
Result<ChosenShardings> read_shardings(const LoweredModule& lowered, const HloInterface& compiled);

/// Converts a sharding of a compiled module. The result is over the first of `program`'s meshes
/// whose axes can express it, or over a mesh made for it.
/// @pre program.mesh
/// @error invalid argument or unimplemented: it is not a device placement (manual, unknown); it
/// uses axes that the mesh lacks.
Result<Sharding> sharding_of(const HloSharding& sharding, const LoweredModule& program,
                             std::size_t rank);

}  // namespace meshard

// What the compiler decided, read back from the compiled module.
#pragma once
#include <optional>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/lowering/lower.h"
#include "meshard/pjrt/hlo_module.h"

namespace meshard {

/// The shardings that a compiled program really uses, for every argument and result.
struct ChosenShardings {
  std::vector<std::optional<Sharding>> arguments;
  std::vector<std::optional<Sharding>> results;
};

/// Reads them from the optimized module. Where the text asked for a sharding, that is returned,
/// after a check that the module's shard shapes agree; else the compiler's own choice, over the
/// program's first mesh that has axes for it, or over a mesh made for it if none has.
/// @error invalid argument if the compiler's choice is no placement; internal if it did not keep to
/// what was asked.
Result<ChosenShardings> read_shardings(const LoweredModule& lowered,
                                       const pjrt::HloModule& compiled);

/// One sharding as a compiled module writes it, over the first of `program`'s meshes whose axes say
/// it, or over a mesh made for it.
/// @pre program.mesh
/// @error invalid argument or unimplemented: it is no placement (manual, unknown); it names axes
/// that the mesh lacks.
Result<Sharding> sharding_of(const pjrt::OpSharding& sharding, const LoweredModule& program,
                             std::size_t rank);

}  // namespace meshard

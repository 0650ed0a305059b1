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

/// Reads them from the optimised module. Where the text asked for a sharding, that is returned,
/// after a check that the module's shard shapes agree; else the compiler's own choice, over the
/// program's first mesh that has axes for it, or over a mesh made for it if none has.
/// @error invalid argument if the compiler's choice is no placement; internal if it did not keep to
/// what was asked.
Result<ChosenShardings> read_shardings(const LoweredModule& lowered,
                                       const pjrt::HloModule& compiled);

}  // namespace meshard

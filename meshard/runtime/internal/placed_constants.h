// Small constants are placed by the host, without a program.
#pragma once
#include <optional>
#include <vector>

#include "meshard/graph/storage.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/internal/stages.h"

namespace meshard {

/// The results of a stage that computes only constants below 64 KiB, such as `zeros(shape)` and
/// `full(shape, 0.5)`. Compiling a program takes 25 to 45 ms
/// for each shape, sending 64 KiB takes 0.1 ms. None for other stages, for open shardings, and for
/// devices of several processes.
/// @error those of place()
std::optional<std::vector<StoragePtr>> placed_constants(Runtime& runtime, const Stage& stage,
                                                        SourceLocation where);

}  // namespace meshard

// Small constants are placed by the host, without a program.
#pragma once
#include <optional>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/graph/storage.h"
#include "meshard/graph/tensor.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/internal/stages.h"

namespace meshard {

/// The elements of a recorded value that is a constant, or one number repeated, such as
/// `zeros(shape)` and `full(shape, 0.5)`, marked with a sharding or not. None for other values, and
/// for those of 64 KiB or more, which devices fill faster.
std::optional<HostArray> small_constant(const Value& value);

/// The results of a stage that computes only small constants. Compiling a program takes 25 to 45 ms
/// for each shape, sending 64 KiB takes 0.1 ms. None for other stages, for open shardings, and for
/// devices of several processes.
/// @error those of place()
std::optional<std::vector<StoragePtr>> placed_constants(Runtime& runtime, const Stage& stage,
                                                        SourceLocation where);

}  // namespace meshard

// Reductions of 16-bit and 8-bit floats by communication without arithmetic.
#pragma once
#include <cstddef>
#include <span>

#include "meshard/processes/communicator.h"

namespace meshard {

/// all_reduce by all_gather, or by all_to_all and all_gather if there are many elements: each
/// element is combined in f32 by one process, in the order of the group, and rounded once. As many
/// bytes are sent as in a ring.
/// @pre check_call() succeeds
Result<void> all_reduce_by_exchange(Communicator& communicator, std::span<const int> group,
                                    Reduction op, DType type, const void* in, void* out,
                                    std::size_t count);

/// reduce_scatter by all_to_all, likewise.
Result<void> reduce_scatter_by_exchange(Communicator& communicator, std::span<const int> group,
                                        Reduction op, DType type, const void* in, void* out,
                                        std::size_t count);

}  // namespace meshard

// How often layer_slice was recorded: without it there are no layers to search for.
#pragma once
#include <cstdint>

namespace meshard::internal {

/// The number of layer slices that this thread has recorded.
std::uint64_t layer_slices_recorded();

}  // namespace meshard::internal

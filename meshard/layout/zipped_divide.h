// Zipped divide: a logical divide with its modes collected into two (row-major).
#pragma once
#include "meshard/layout/layout.h"
#include "meshard/layout/tiler.h"

namespace meshard {

/// logical_divide with the tiles collected in mode 0 and the rest in mode 1. ((tile, rest), (tile,
/// rest), ...) becomes ((tile, tile, ...), (rest, rest, ..., other modes)): mode 0 steps within a
/// tile, mode 1 from tile to tile. For none: (1:0, a).
/// @post the values of logical_divide, in another order.
/// @error as logical_divide.
Result<Layout> zipped_divide(const Layout& a, const Tiler& b);

}  // namespace meshard

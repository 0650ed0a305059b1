// Tiled divide: a zipped divide whose second half is spread into separate modes (row-major).
#pragma once
#include "meshard/layout/layout.h"
#include "meshard/layout/tiler.h"

namespace meshard {

/// zipped_divide with its result (first, (second, third, ...)) as (first, second, third, ...).
/// @post the same function as zipped_divide.
/// @error as logical_divide.
Result<Layout> tiled_divide(const Layout& a, const Tiler& b);

}  // namespace meshard

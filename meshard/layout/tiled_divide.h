// Tiled divide: a zipped divide with the second half as modes of its own (row-major).
#pragma once
#include "meshard/layout/layout.h"
#include "meshard/layout/tiler.h"

namespace meshard {

/// zipped_divide with (first, (second, third, ...)) as (first, second, third, ...).
/// @post the function of zipped_divide.
/// @error as logical_divide.
Result<Layout> tiled_divide(const Layout& a, const Tiler& b);

}  // namespace meshard

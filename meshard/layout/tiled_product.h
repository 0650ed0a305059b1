// Tiled product: a zipped product whose second half is spread into separate modes (row-major).
#pragma once
#include "meshard/layout/layout.h"
#include "meshard/layout/tiler.h"

namespace meshard {

/// zipped_product with its result (first, (second, third, ...)) as (first, second, third, ...).
/// @post the same function as zipped_product.
/// @error as logical_product.
Result<Layout> tiled_product(const Layout& a, const Tiler& b);

}  // namespace meshard

// Tiled product: a zipped product with the second half as modes of its own (row-major).
#pragma once
#include "meshard/layout/layout.h"
#include "meshard/layout/tiler.h"

namespace meshard {

/// zipped_product with (first, (second, third, ...)) as (first, second, third, ...).
/// @post the function of zipped_product.
/// @error as logical_product.
Result<Layout> tiled_product(const Layout& a, const Tiler& b);

}  // namespace meshard

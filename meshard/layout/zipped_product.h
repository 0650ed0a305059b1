// Zipped product: a logical product with its modes collected into two (row-major).
#pragma once
#include "meshard/layout/layout.h"
#include "meshard/layout/tiler.h"

namespace meshard {

/// logical_product with the modes of `a` collected in mode 0 and the copies in mode 1. ((mode,
/// copies), (mode, copies), ...) becomes ((mode, mode, ...), (copies, copies, ..., other modes)):
/// mode 0 steps within one copy, mode 1 from copy to copy. For none: (1:0, a).
/// @post the values of logical_product, in another order.
/// @error as logical_product.
Result<Layout> zipped_product(const Layout& a, const Tiler& b);

}  // namespace meshard

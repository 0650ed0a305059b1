// Injective: whether a layout has no repeated values.
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

/// True if no two indices have the same value. Exact for strides of any sign and order, without
/// enumerating the values: (3,2):(2,3) is injective although its modes interlock.
bool is_injective(const Layout& layout);

}  // namespace meshard

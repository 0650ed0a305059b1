// Injective: no value twice.
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

/// True if the layout takes no value twice. Exact, for strides of any sign and order, and without
/// listing values: (3,2):(2,3) is injective although its modes interlock.
bool is_injective(const Layout& layout);

}  // namespace meshard

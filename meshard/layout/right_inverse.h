// Right inverse: the indices at which a layout has the values 0, 1, 2, ... (row-major).
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

/// The coalesced layout R of the indices at which `layout` has the values 0, 1, ... R takes the
/// modes, smallest stride first, as long as each continues the previous ones without a gap. `1:0`
/// if one of several modes has stride 0 (as in PyTorch 2.15), or if no stride is 1.
/// @post layout(R(i)) = i for all i in 0..R.size()-1.
Layout right_inverse(const Layout& layout);

}  // namespace meshard

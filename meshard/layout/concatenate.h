// Concatenate: one layout whose modes are the given layouts (row-major).
#pragma once
#include <initializer_list>
#include <span>

#include "meshard/layout/layout.h"

namespace meshard {

/// The layout whose mode k is `layouts[k]` with its nesting; `():()` for an empty list.
/// @post the value at coordinate (i, j, ...) is layouts[0](i) + layouts[1](j) + ...
/// @error size or cosize do not fit 64 bits.
Layout concatenate(std::span<const Layout> layouts);
Layout concatenate(std::initializer_list<Layout> layouts);
Layout concatenate(const Layout& first, const Layout& second);

}  // namespace meshard
